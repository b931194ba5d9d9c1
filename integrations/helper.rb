# What the tests share: a folder for each test, the debug files of testdata, and the command.

require "fileutils"
require "minitest/autorun"
require "open3"
require "tmpdir"

ROOT = File.expand_path("..", __dir__)
SYMDEX = ENV["SYMDEX_COMMAND"] || File.join(ROOT, "target/debug/symdex")
unless File.file?(SYMDEX)
  abort "#{SYMDEX} is missing; run `cargo build -p symdex-cli`, or name the command with SYMDEX_COMMAND"
end

class IntegrationTest < Minitest::Test
  def setup
    @root = Dir.mktmpdir
    FileUtils.mkdir(File.join(@root, "bin"))
    File.symlink(SYMDEX, File.join(@root, "bin/symdex"))
  end

  def teardown
    FileUtils.rm_rf(@root)
  end

  def in_root(*parts)
    File.join(@root, *parts)
  end

  def dsym(name)
    File.join(ROOT, "testdata/dsyms/#{name}.dSYM")
  end

  # The debug file of a dSYM, which stands for the binary, too.
  def debug_file(name)
    File.join(dsym(name), "Contents/Resources/DWARF", name)
  end

  def write(path, bytes)
    FileUtils.mkdir_p(File.dirname(in_root(path)))
    File.binwrite(in_root(path), bytes)
    in_root(path)
  end

  # An .xcarchive with the binaries cxx and lto, and the dSYMs of these names.
  def xcarchive(path, *dsyms)
    %w[cxx lto].each { |name| write("#{path}/Products/Applications/A.app/#{name}", File.binread(debug_file(name))) }
    FileUtils.mkdir_p(in_root(path, "dSYMs"))
    dsyms.each { |name| FileUtils.cp_r(dsym(name), in_root(path, "dSYMs")) }
  end

  def indexes(folder = "indexes")
    Dir.glob(in_root(folder, "*.symdex"))
  end

  # Yields the URL of a server on this machine, over an empty store.
  def with_server
    state = { "SYMDEX_STATE" => in_root("state"), "SYMDEX_DRAIN" => "0s" }
    store = in_root("server-store")
    serve = [SYMDEX, "--no-config", "serve", "--listen", "127.0.0.1:0", "--store", store]
    Open3.popen2e(state, *serve) do |_, out, server|
      address = nil
      address = out.gets[/listening at (\S+)/, 1] until address
      yield "http://#{address}"
    ensure
      Process.kill("TERM", server.pid)
    end
    FileUtils.rm_rf([store, in_root("state")])
  end

  # Runs a command in the folder of the test, with only these variables. Returns its output and whether it succeeds.
  def run_in_root(variables, *command)
    variables = { "PATH" => "#{in_root("bin")}:#{ENV.fetch("PATH")}", "HOME" => @root }.merge(variables)
    out, status = Open3.capture2e(variables, *command, chdir: @root, unsetenv_others: true)
    [out, status.success?]
  end
end
