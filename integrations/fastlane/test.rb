# Runs the action with stand-ins for the parts of fastlane that it uses.

require_relative "../helper"

module FastlaneCore
  class ConfigItem
    attr_reader :key, :optional, :type, :default_value

    def initialize(key:, type:, description:, env_name: nil, optional: false, default_value: nil)
      raise "#{key} has no description" if description.empty?

      @key, @optional, @type, @default_value = key, optional, type, default_value
    end
  end
end

module Fastlane
  class UserError < StandardError; end

  # What fastlane prints.
  module UI
    def self.lines
      @lines ||= []
    end

    %i[command important message].each { |kind| define_singleton_method(kind) { |text| lines << text } }

    def self.user_error!(text)
      raise UserError, text
    end
  end

  module Actions
    def self.lane_context
      @lane_context ||= {}
    end
  end

  class Action; end
  # fastlane's type of options that are true or false.
  Boolean = :boolean
end

require "rubygems"

PLUGIN = Gem::Specification.load(File.join(__dir__, "fastlane-plugin-symdex.gemspec"))
# fastlane requires the name of the gem, with slashes.
$LOAD_PATH.unshift(*PLUGIN.full_require_paths.map { |path| File.join(__dir__, File.basename(path)) })
require PLUGIN.name.tr("-", "/")

class FastlaneTest < IntegrationTest
  Action = Fastlane::Actions::SymdexAction

  def setup
    super
    Fastlane::Actions.lane_context.clear
    Fastlane::UI.lines.clear
  end

  # The values of the options, with their defaults, as fastlane passes them.
  def run_action(options = {})
    items = Action.available_options
    assert_empty options.keys - items.map(&:key)
    defaults = items.to_h { |item| [item.key, item.default_value] }
    Dir.chdir(@root) { Action.run({ **defaults, executable: SYMDEX, **options }) }
  end

  def test_what_the_lane_has_made_gets_indexes
    xcarchive("App.xcarchive", "cxx", "lto")
    Fastlane::Actions.lane_context[:DSYM_OUTPUT_PATH] = "App.xcarchive"
    Fastlane::Actions.lane_context[:DSYM_PATHS] = ["App.xcarchive", dsym("icf")]
    images = run_action(output: "indexes")
    assert_equal %w[cxx icf lto], images.map { |image| image["name"] }.sort
    assert_equal images, Fastlane::Actions.lane_context[:SYMDEX_IMAGES]
    assert_equal 3, indexes.size
    assert(images.all? { |image| File.file?(in_root(image["location"])) })
  end

  def test_a_missing_dsym_fails_the_lane
    xcarchive("App.xcarchive", "cxx")
    error = assert_raises(Fastlane::UserError) { run_action(inputs: ["App.xcarchive"], output: "indexes") }
    assert_match(/exit code 3.*no input has debug information of lto/m, error.message)
    assert_equal 1, run_action(inputs: "App.xcarchive", output: "indexes", require_all: false).size
  end

  def test_a_store_gets_the_indexes
    run_action(inputs: [dsym("cxx")], store: in_root("store"))
    assert_equal 1, Dir.glob(in_root("store", "**", "*.symdex")).size
  end

  def test_a_server_gets_the_indexes_once
    with_server do |server|
      %w[answered unchanged].each do |outcome|
        images = run_action(inputs: [dsym("cxx")], server: server, output: "not-used")
        assert_equal [outcome], images.map { |image| image["outcome"] }
      end
    end
    refute File.exist?(in_root("not-used"))
    xcarchive("App.xcarchive", "cxx")
    with_server do |server|
      error = assert_raises(Fastlane::UserError) { run_action(inputs: ["App.xcarchive"], server: server) }
      assert_match(/symdex upload has failed \(exit code 3\)/, error.message)
    end
  end

  def test_fastlane_finds_the_action_in_the_gem
    assert_equal PLUGIN.version.to_s, Fastlane::Symdex::VERSION
    [*Fastlane::Symdex.all_classes, *PLUGIN.files.map { |file| File.join(__dir__, file) }].each do |file|
      assert File.file?(file), file
    end
    assert_includes PLUGIN.files, "lib/fastlane/plugin/symdex/actions/symdex_action.rb"
    names = Fastlane::Symdex.all_classes.map { |file| [File.basename(File.dirname(file)), File.basename(file)] }
    assert_equal [["actions", "symdex_action.rb"]], names
  end

  def test_no_inputs_and_no_program
    error = assert_raises(Fastlane::UserError) { run_action }
    assert_match(/call build_app before symdex/, error.message)
    error = assert_raises(Fastlane::UserError) { run_action(inputs: ["x"], executable: "no-such-program") }
    assert_match(/no-such-program is not installed/, error.message)
  end

  def test_the_documentation_is_complete
    %i[description details output return_value authors example_code category].each do |part|
      refute_empty Action.public_send(part).to_s
    end
    assert Action.is_supported?(:ios)
    refute Action.is_supported?(:windows)
  end
end
