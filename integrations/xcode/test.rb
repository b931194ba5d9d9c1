# Runs the build phase with the variables that Xcode sets.

require_relative "../helper"

class XcodeTest < IntegrationTest
  SCRIPT = File.join(__dir__, "symdex-build-phase.sh")

  def setup
    super
    write("Build/App.app/App", File.binread(debug_file("fat")))
    write("Build/App.app.dSYM/Contents/Resources/DWARF/App", File.binread(debug_file("fat")))
    @settings = {
      "DEBUG_INFORMATION_FORMAT" => "dwarf-with-dsym",
      "DERIVED_FILE_DIR" => in_root("Build"),
      "DWARF_DSYM_FILE_NAME" => "App.app.dSYM",
      "DWARF_DSYM_FOLDER_PATH" => in_root("Build"),
      "EXECUTABLE_NAME" => "App",
      "EXECUTABLE_PATH" => "App.app/App",
      "SCRIPT_OUTPUT_FILE_0" => in_root("Build/symdex.stamp"),
      "SYMDEX_INDEXES" => in_root("indexes"),
      "TARGET_BUILD_DIR" => in_root("Build")
    }
  end

  # Xcode runs /bin/sh, which is bash there.
  def run_phase(changes = {})
    run_in_root(@settings.merge(changes).compact, "sh", SCRIPT)
  end

  # The paths of a list of files, as Xcode reads it.
  def paths_of(list)
    lines = File.readlines(File.join(__dir__, "#{list}.xcfilelist"), chomp: true)
    lines.reject { |line| line.start_with?("#") }.map { |line| line.gsub(/\$\((\w+)\)/) { @settings.fetch($1) } }
  end

  def test_every_architecture_gets_an_index
    out, ok = run_phase
    assert ok, out
    assert_equal 3, indexes.size
    assert File.exist?(in_root("Build/symdex.stamp"))
    out, ok = run_phase
    assert ok, out
    refute_includes out, ": written"
  end

  def test_the_phase_waits_for_the_files_of_its_list
    expected = [in_root("Build/App.app.dSYM/Contents/Resources/DWARF/App"), in_root("Build/App.app/App")]
    assert_equal expected, paths_of("input")
    assert(expected.all? { |path| File.file?(path) })
    assert_equal [@settings["SCRIPT_OUTPUT_FILE_0"]], paths_of("output")
  end

  def test_a_dsym_of_another_build_is_an_error
    write("Build/App.app/App", File.binread(debug_file("cxx")))
    out, ok = run_phase
    refute ok
    assert_includes out, "which --id asks for"
    assert_includes out, "error: symdex: there is no index of App.app/App"
    refute File.exist?(in_root("Build/symdex.stamp"))
  end

  def test_a_missing_dsym_is_an_error
    FileUtils.rm(in_root("Build/App.app.dSYM/Contents/Resources/DWARF/App"))
    out, ok = run_phase
    refute ok
    assert_match(/^error: symdex: .*App\.app\.dSYM has no debug information of App;/, out)
  end

  def test_a_configuration_without_dsyms_gets_no_index
    out, ok = run_phase("DEBUG_INFORMATION_FORMAT" => "dwarf")
    assert ok
    assert_includes out, "note: symdex: no index"
    assert_empty indexes
  end

  def test_the_indexes_can_go_to_a_store
    out, ok = run_phase("SYMDEX_INDEXES" => nil, "SYMDEX_STORE" => in_root("store"))
    assert ok, out
    assert_equal 3, Dir.glob(in_root("store", "**", "*.symdex")).size
    out, ok = run_phase("SYMDEX_INDEXES" => nil)
    refute ok
    assert_includes out, "error: symdex: set the build setting SYMDEX_SERVER to a URL, SYMDEX_INDEXES"
  end

  def test_a_server_gets_the_indexes_once
    with_server do |server|
      [/: answered, /, /: unchanged$/].each do |outcome|
        out, ok = run_phase("SYMDEX_INDEXES" => nil, "SYMDEX_SERVER" => server)
        assert ok, out
        assert_equal 3, out.scan(outcome).size, out
      end
      write("Build/App.app/App", File.binread(debug_file("cxx")))
      out, ok = run_phase("SYMDEX_INDEXES" => nil, "SYMDEX_SERVER" => server)
      refute ok
      assert_includes out, "which --id asks for"
    end
    assert_empty indexes
  end

  def test_a_folder_for_the_indexes_comes_before_a_server_of_the_environment
    out, ok = run_phase("SYMDEX_SERVER" => "http://127.0.0.1:9")
    assert ok, out
    assert_equal 3, indexes.size
  end

  def test_symdex_has_to_be_installed
    out, ok = run_phase("SYMDEX" => "no-such-program")
    refute ok
    assert_includes out, "error: symdex: no-such-program is not installed"
  end
end
