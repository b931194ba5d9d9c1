module Fastlane
  # What fastlane wants of a plugin.
  module Symdex
    VERSION = "0.1.0"

    def self.all_classes
      [File.expand_path("symdex/actions/symdex_action.rb", __dir__)]
    end
  end
end

Fastlane::Symdex.all_classes.each { |file| require file }
