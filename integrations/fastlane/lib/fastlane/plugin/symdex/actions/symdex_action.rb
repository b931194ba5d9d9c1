require "json"
require "open3"

module Fastlane
  module Actions
    module SharedValues
      SYMDEX_IMAGES = :SYMDEX_IMAGES
    end

    # Builds the indexes of an app's dSYMs, and sends them to a server. `fastlane action symdex` prints the
    # documentation.
    class SymdexAction < Action
      def self.run(params)
        command = command_of(params)
        UI.command(command.join(" "))
        out, messages, status = Open3.capture3(*command)
        messages.each_line(chomp: true) { |line| UI.important(line) }
        results = out.each_line.map { |line| JSON.parse(line) }
        images = results.select { |result| result.key?("outcome") }
        images.each { |image| UI.message("#{image["name"]} #{image["arch"]} #{image["id"]}: #{image["outcome"]}") }
        unless status.success?
          UI.user_error!("symdex #{command[1]} has failed (exit code #{status.exitstatus}): #{messages}")
        end
        Actions.lane_context[SharedValues::SYMDEX_IMAGES] = images
      rescue Errno::ENOENT
        UI.user_error!("#{params[:executable]} is not installed; name symdex with the option executable")
      end

      def self.command_of(params)
        inputs = Array(params[:inputs] || inputs_of_lane)
        UI.user_error!("there are no inputs: call build_app before symdex, or give inputs") if inputs.empty?
        server = params[:server]
        # The variable counts only without these options.
        server ||= ENV.fetch("SYMDEX_SERVER", nil) unless params[:output] || params[:store]
        server = nil if server.to_s.empty?
        command = [params[:executable], server ? "upload" : "build", "--json"]
        command << "--require-all" if params[:require_all]
        options = server ? { server: server } : { output: params[:output], store: params[:store] }
        options.compact.each { |key, value| command.push("--#{key}", value) }
        command.push("--", *inputs)
      end

      # What the actions build_app and download_dsyms have made.
      def self.inputs_of_lane
        context = Actions.lane_context
        made = [context[:IPA_OUTPUT_PATH], context[:DSYM_OUTPUT_PATH], *context[:DSYM_PATHS]]
        made.compact.uniq
      end

      def self.description
        "Builds the symdex indexes of an app's dSYMs, and sends them to a server"
      end

      def self.details
        "Fails if one of the binaries has no dSYM. With server, the indexes that it does not have are sent to it; " \
          "the environment variable SYMDEX_SERVER_TOKEN has its token. Without server, output and store, the indexes " \
          "go to the server or the stores in the environment variables SYMDEX_SERVER or SYMDEX_STORE."
      end

      def self.available_options
        [
          FastlaneCore::ConfigItem.new(
            key: :inputs, env_name: "SYMDEX_INPUTS", type: Array, optional: true,
            description: "The dSYMs, archives and folders. The default is what build_app and download_dsyms have made"
          ),
          FastlaneCore::ConfigItem.new(
            key: :server, type: String, optional: true,
            description: "The URL of the server that gets the indexes; output and store are not used then. Without " \
                         "these three options, the environment variable SYMDEX_SERVER has it"
          ),
          FastlaneCore::ConfigItem.new(
            key: :output, env_name: "SYMDEX_OUTPUT", type: String, optional: true,
            description: "The folder for the indexes"
          ),
          FastlaneCore::ConfigItem.new(
            key: :store, type: String, optional: true,
            description: "The URL of the store for the indexes, without a password"
          ),
          FastlaneCore::ConfigItem.new(
            key: :require_all, env_name: "SYMDEX_REQUIRE_ALL", type: Boolean, default_value: true,
            description: "Whether to fail if an image gets no index with debug information"
          ),
          FastlaneCore::ConfigItem.new(
            key: :executable, env_name: "SYMDEX_EXECUTABLE", type: String, default_value: "symdex",
            description: "The program"
          )
        ]
      end

      def self.output
        [["SYMDEX_IMAGES", "The images with an index, as `symdex build --json` or `symdex upload --json` prints them"]]
      end

      def self.return_value
        "The value of SYMDEX_IMAGES"
      end

      def self.authors
        ["The symdex developers"]
      end

      def self.is_supported?(platform)
        %i[ios mac android].include?(platform)
      end

      def self.example_code
        [
          'symdex(server: "https://symbols.example.com")',
          'symdex(output: "indexes")',
          'symdex(inputs: ["App.xcarchive"], store: "s3://bucket/indexes")'
        ]
      end

      def self.category
        :building
      end
    end
  end
end
