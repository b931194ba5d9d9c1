Gem::Specification.new do |spec|
  spec.name = "fastlane-plugin-symdex"
  spec.version = "0.1.0"
  spec.authors = ["The symdex developers"]
  spec.summary = "Builds the symdex indexes of an app's dSYMs, and sends them to a server"
  spec.licenses = ["MIT", "Apache-2.0"]
  spec.required_ruby_version = ">= 2.6"
  spec.files = Dir["lib/**/*.rb", "README.md", base: __dir__]
  spec.require_paths = ["lib"]
end
