# Runs the steps of action.yml as the runner of GitHub does, with this symdex.

require_relative "../helper"
require "yaml"

class GitHubActionTest < IntegrationTest
  ACTION = YAML.load_file(File.join(__dir__, "action.yml"))

  # The steps with these inputs. Returns their output and whether they succeed.
  def run_action(inputs, variables = {})
    defaults = ACTION.fetch("inputs").transform_values { |input| input["default"] }
    unknown = inputs.keys - defaults.keys
    assert_empty unknown
    values = defaults.merge(inputs)
    out = ""
    ACTION.dig("runs", "steps").each do |step|
      assert_equal "bash", step.fetch("shell")
      env = step.fetch("env").transform_values do |value|
        value.gsub(/\$\{\{ inputs\.([\w-]+) \}\}/) { values.fetch($1) || flunk("the input #{$1} is required") }
      end
      env.merge!("GITHUB_ACTION_PATH" => __dir__, "GITHUB_STEP_SUMMARY" => in_root("summary.md"))
      shell = %w[bash --noprofile --norc -eo pipefail -c]
      of_step, ok = run_in_root(env.merge(variables), *shell, step.fetch("run"))
      out += of_step
      return [out, false] unless ok
    end
    [out, true]
  end

  def test_all_images_get_indexes
    xcarchive("My App.xcarchive", "cxx", "lto")
    out, ok = run_action({ "inputs" => "My App.xcarchive\n\n#{dsym("icf")}\n", "output" => "indexes" })
    assert ok, out
    assert_equal 3, indexes.size
    assert_includes File.read(in_root("summary.md")), File.basename(indexes.first)
    # The totals are neither.
    refute_match(/::(error|warning)::/, out)
    assert_match(/^3 indexes, /, out)
  end

  def test_a_missing_dsym_is_an_error
    xcarchive("App.xcarchive", "cxx")
    out, ok = run_action({ "inputs" => "App.xcarchive", "output" => "indexes" })
    refute ok
    assert_match(/^::error::.*no input has debug information of lto/, out)
    out, ok = run_action({ "inputs" => "App.xcarchive", "output" => "indexes", "require-all" => "false" })
    assert ok, out
    refute_match(/::error::/, out)
  end

  def test_warnings_are_annotations
    plain = File.join(ROOT, "testdata/demo/DemoPlain.dylib")
    out, ok = run_action({ "inputs" => plain, "output" => "indexes", "require-all" => "false" })
    assert ok, out
    assert_match(/^::warning::.*no debug information/, out)
    refute_match(/::error::/, out)
  end

  def test_without_output_the_indexes_go_to_the_store
    inputs = { "inputs" => dsym("cxx"), "arguments" => "--verify\n--jobs=1" }
    out, ok = run_action(inputs, { "SYMDEX_STORE" => in_root("store") })
    assert ok, out
    assert_equal 1, Dir.glob(in_root("store", "**", "*.symdex")).size
  end

  def test_a_server_gets_the_indexes_once
    with_server do |server|
      out, ok = run_action({ "inputs" => dsym("cxx"), "server" => server, "output" => "not-used" })
      assert ok, out
      assert_match(/ cxx: answered, /, out)
      out, ok = run_action({ "inputs" => dsym("cxx") }, { "SYMDEX_SERVER" => server })
      assert ok, out
      assert_match(/ cxx: unchanged$/, out)
      refute_includes out, "::"
      xcarchive("App.xcarchive", "cxx")
      out, ok = run_action({ "inputs" => "App.xcarchive", "server" => server })
      refute ok
      assert_match(/^::error::.*no input has debug information of lto/, out)
    end
    refute File.exist?(in_root("not-used"))
  end

  def test_messages_have_no_commands_of_the_runner
    out, ok = run_action({ "inputs" => "100%0A::error::x", "output" => "indexes" })
    refute ok
    assert_includes out, "::error::100%250A::error::x"
  end

  def test_symdex_has_to_be_installed
    out, ok = run_action({ "inputs" => "x", "symdex" => "no-such-program" })
    refute ok
    assert_includes out, "::error::no-such-program is not installed"
  end
end
