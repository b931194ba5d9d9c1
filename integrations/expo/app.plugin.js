// An Expo config plugin: adds the build phase of ../xcode to the app's Xcode project, and a Gradle task for the native
// libraries of the Android app.
const fs = require("node:fs");
const path = require("node:path");
const { createRunOncePlugin, withAppBuildGradle, withXcodeProject } = require("@expo/config-plugins");

const PHASE = "Build symdex indexes";
const INPUTS = [
  "$(DWARF_DSYM_FOLDER_PATH)/$(DWARF_DSYM_FILE_NAME)/Contents/Resources/DWARF/$(EXECUTABLE_NAME)",
  "$(TARGET_BUILD_DIR)/$(EXECUTABLE_PATH)",
];
const OUTPUTS = ["$(DERIVED_FILE_DIR)/symdex.stamp"];

/** The script of the build phase. In a clone of symdex, it is beside this folder. */
function script() {
  const places = [__dirname, path.join(__dirname, "..", "xcode")];
  const files = places.map((folder) => path.join(folder, "symdex-build-phase.sh"));
  return fs.readFileSync(files.find((file) => fs.existsSync(file)), "utf8");
}

/** Text in a project file is in quotation marks. */
const quoted = (text) => JSON.stringify(text);

/** Adds the build phase to the app's target of an Xcode project, after all others, and its build settings. */
function addBuildPhase(project, { server, indexes, symdex } = {}) {
  const target = project.getFirstTarget();
  const names = target.firstTarget.buildPhases.map(({ comment }) => comment);
  if (!names.includes(PHASE)) {
    const { buildPhase } = project.addBuildPhase([], "PBXShellScriptBuildPhase", PHASE, target.uuid, {
      shellPath: "/bin/sh",
      shellScript: "",
    });
    buildPhase.inputPaths = INPUTS.map(quoted);
    buildPhase.outputPaths = OUTPUTS.map(quoted);
  }
  // A newer version of the plugin brings a newer script.
  for (const phase of Object.values(project.hash.project.objects.PBXShellScriptBuildPhase)) {
    if (phase.name === quoted(PHASE)) {
      phase.shellScript = quoted(script());
    }
  }
  const settings = {
    // In its sandbox, the script cannot write indexes or reach a server.
    ENABLE_USER_SCRIPT_SANDBOXING: "NO",
    // The Xcode project is in the folder ios.
    ...(server && { SYMDEX_SERVER: quoted(server) }),
    ...(indexes && { SYMDEX_INDEXES: quoted(path.isAbsolute(indexes) ? indexes : `$(SRCROOT)/../${indexes}`) }),
    ...(symdex && { SYMDEX: quoted(symdex) }),
  };
  const list = target.firstTarget.buildConfigurationList;
  const configurations = project.pbxXCConfigurationList()[list].buildConfigurations;
  for (const { value } of configurations) {
    Object.assign(project.pbxXCBuildConfigurationSection()[value].buildSettings, settings);
  }
  return project;
}

/** Adds the Gradle task to the text of android/app/build.gradle. */
function addGradleTask(gradle, { server, indexes, symdex } = {}) {
  const begin = "// symdex-expo: begin";
  const end = "// symdex-expo: end";
  const groovy = (text) => `'${text.replace(/[\\']/g, "\\$&")}'`;
  // The Gradle project is in the folder android.
  const folder = (name) => (path.isAbsolute(name) ? groovy(name) : `new File(rootDir, ${groovy(`../${name}`)}).path`);
  const lines = [
    begin,
    ...(symdex ? [`ext.symdex = ${groovy(symdex)}`] : []),
    ...(server ? [`ext.symdexServer = ${groovy(server)}`] : []),
    ...(indexes ? [`ext.symdexIndexes = ${folder(indexes)}`] : []),
    fs.readFileSync(path.join(__dirname, "symdex.gradle"), "utf8").trimEnd(),
    end,
  ];
  const before = gradle.includes(begin) ? gradle.slice(0, gradle.indexOf(begin)) : `${gradle.trimEnd()}\n\n`;
  const after = gradle.includes(end) ? gradle.slice(gradle.indexOf(end) + end.length) : "\n";
  return `${before}${lines.join("\n")}${after}`;
}

function withSymdex(config, options) {
  const given = options ?? {};
  const withPhase = withXcodeProject(config, (mod) => {
    addBuildPhase(mod.modResults, given);
    return mod;
  });
  return withAppBuildGradle(withPhase, (mod) => {
    if (mod.modResults.language !== "groovy") {
      throw new Error("symdex-expo: android/app/build.gradle is not in Groovy; add the task of symdex.gradle by hand");
    }
    mod.modResults.contents = addGradleTask(mod.modResults.contents, given);
    return mod;
  });
}

const { name, version } = require("./package.json");
module.exports = createRunOncePlugin(withSymdex, name, version);
module.exports.addBuildPhase = addBuildPhase;
module.exports.addGradleTask = addGradleTask;
