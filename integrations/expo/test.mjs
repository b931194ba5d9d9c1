// Applies the plugin to a project of Xcode and to a build.gradle, and runs the script that it adds.
//
// EXPO_MODULES names the folder node_modules that has @expo/config-plugins.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.join(here, "..", "..");
const symdex = process.env.SYMDEX_COMMAND ?? path.join(root, "target", "debug", "symdex");
// The plugin is elsewhere than the packages that it needs.
const modules = process.env.EXPO_MODULES;
assert.ok(modules, "EXPO_MODULES is not set");
process.env.NODE_PATH = modules;
const require = createRequire(import.meta.url);
require("node:module").Module._initPaths();
const { compileModsAsync } = require("@expo/config-plugins");
const xcode = require("xcode");
const withSymdex = require("./app.plugin.js");

/** A folder that is removed after the tests. */
const temporaryFolder = () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "symdex-expo-"));
  after(() => fs.rmSync(folder, { recursive: true, force: true }));
  return folder;
};
const { addGradleTask } = withSymdex;

const ids = { debug: "13B07F941A680F5B00A75B9A", release: "13B07F951A680F5B00A75B9A" };
const PROJECT = `// !$*UTF8*$!
{
	archiveVersion = 1;
	classes = {
	};
	objectVersion = 46;
	objects = {
/* Begin PBXNativeTarget section */
		13B07F861A680F5B00A75B9A /* App */ = {
			isa = PBXNativeTarget;
			buildConfigurationList = 13B07F931A680F5B00A75B9A /* Build configuration list for PBXNativeTarget "App" */;
			buildPhases = (
				13B07F871A680F5B00A75B9A /* Sources */,
			);
			name = App;
			productName = App;
			productType = "com.apple.product-type.application";
		};
/* End PBXNativeTarget section */
/* Begin PBXProject section */
		83CBB9F71A601CBA00E9B192 /* Project object */ = {
			isa = PBXProject;
			targets = (
				13B07F861A680F5B00A75B9A /* App */,
			);
		};
/* End PBXProject section */
/* Begin PBXSourcesBuildPhase section */
		13B07F871A680F5B00A75B9A /* Sources */ = {
			isa = PBXSourcesBuildPhase;
			files = (
			);
		};
/* End PBXSourcesBuildPhase section */
/* Begin XCBuildConfiguration section */
		${ids.debug} /* Debug */ = {
			isa = XCBuildConfiguration;
			buildSettings = {
				PRODUCT_NAME = App;
			};
			name = Debug;
		};
		${ids.release} /* Release */ = {
			isa = XCBuildConfiguration;
			buildSettings = {
				PRODUCT_NAME = App;
			};
			name = Release;
		};
/* End XCBuildConfiguration section */
/* Begin XCConfigurationList section */
		13B07F931A680F5B00A75B9A /* Build configuration list for PBXNativeTarget "App" */ = {
			isa = XCConfigurationList;
			buildConfigurations = (
				${ids.debug} /* Debug */,
				${ids.release} /* Release */,
			);
			defaultConfigurationName = Release;
		};
/* End XCConfigurationList section */
	};
	rootObject = 83CBB9F71A601CBA00E9B192 /* Project object */;
}
`;
const GRADLE = 'apply plugin: "com.android.application"\n\nandroid {\n}\n';

/** A new project of an app, after `expo prebuild` has applied the plugin `times` times. */
async function prebuild(options, times = 1) {
  const folder = temporaryFolder();
  const files = {
    "ios/App.xcodeproj/project.pbxproj": PROJECT,
    "ios/App/AppDelegate.swift": "",
    "android/build.gradle": "",
    "android/app/build.gradle": GRADLE,
  };
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    fs.writeFileSync(path.join(folder, name), text);
  }
  for (let time = 0; time < times; time++) {
    const config = withSymdex({ name: "App", slug: "app", _internal: { projectRoot: folder } }, options);
    await compileModsAsync(config, { projectRoot: folder, platforms: ["ios", "android"] });
  }
  const project = xcode.project(path.join(folder, "ios/App.xcodeproj/project.pbxproj")).parseSync();
  return { folder, project, gradle: fs.readFileSync(path.join(folder, "android/app/build.gradle"), "utf8") };
}

/** The lines of a list of files for Xcode. */
function list(kind) {
  const lines = fs.readFileSync(path.join(here, "..", "xcode", `${kind}.xcfilelist`), "utf8").trim().split("\n");
  return lines.filter((line) => !line.startsWith("#"));
}

const unquoted = (text) => JSON.parse(text);

function phases(project) {
  const all = Object.values(project.hash.project.objects.PBXShellScriptBuildPhase);
  return all.filter((phase) => phase.name === '"Build symdex indexes"');
}

test("the build phase is the last one, and has the files of the lists", async () => {
  for (const times of [1, 2]) {
    const { project } = await prebuild({ indexes: "indexes" }, times);
    const [phase, ...others] = phases(project);
    assert.equal(others.length, 0);
    assert.deepEqual(phase.inputPaths.map(unquoted), list("input"));
    assert.deepEqual(phase.outputPaths.map(unquoted), list("output"));
    const names = project.getFirstTarget().firstTarget.buildPhases.map(({ comment }) => comment);
    assert.deepEqual(names, ["Sources", "Build symdex indexes"]);
    for (const id of Object.values(ids)) {
      const settings = project.pbxXCBuildConfigurationSection()[id].buildSettings;
      assert.equal(settings.ENABLE_USER_SCRIPT_SANDBOXING, "NO");
      assert.equal(unquoted(settings.SYMDEX_INDEXES), "$(SRCROOT)/../indexes");
    }
  }
});

test("the server is a build setting and known to the task", async () => {
  const { project, gradle } = await prebuild({ server: "https://symbols.example.com/a" });
  const settings = project.pbxXCBuildConfigurationSection()[ids.release].buildSettings;
  assert.equal(unquoted(settings.SYMDEX_SERVER), "https://symbols.example.com/a");
  assert.ok(gradle.includes("ext.symdexServer = 'https://symbols.example.com/a'"));
  assert.match(gradle, /server \? 'upload' : 'build'/);
});

test("without options there are no build settings for them", async () => {
  const { project, gradle } = await prebuild();
  const settings = project.pbxXCBuildConfigurationSection()[ids.release].buildSettings;
  assert.deepEqual(Object.keys(settings).sort(), ["ENABLE_USER_SCRIPT_SANDBOXING", "PRODUCT_NAME"]);
  assert.doesNotMatch(gradle, /ext\.symdex/);
});

test("the script of the build phase makes an index", async () => {
  const { folder, project } = await prebuild({ indexes: "indexes", symdex });
  const script = unquoted(phases(project)[0].shellScript);
  assert.equal(script, fs.readFileSync(path.join(here, "..", "xcode", "symdex-build-phase.sh"), "utf8"));
  const settings = project.pbxXCBuildConfigurationSection()[ids.release].buildSettings;
  const dwarf = path.join(root, "testdata/dsyms/cxx.dSYM/Contents/Resources/DWARF");
  const ran = spawnSync("sh", ["-c", script], {
    encoding: "utf8",
    env: {
      HOME: folder,
      PATH: process.env.PATH,
      SYMDEX: unquoted(settings.SYMDEX),
      SYMDEX_INDEXES: unquoted(settings.SYMDEX_INDEXES).replace("$(SRCROOT)", path.join(folder, "ios")),
      DWARF_DSYM_FOLDER_PATH: path.join(root, "testdata/dsyms"),
      DWARF_DSYM_FILE_NAME: "cxx.dSYM",
      EXECUTABLE_NAME: "cxx",
      EXECUTABLE_PATH: "cxx",
      TARGET_BUILD_DIR: dwarf,
    },
  });
  assert.equal(ran.status, 0, ran.stdout + ran.stderr);
  assert.equal(fs.readdirSync(path.join(folder, "indexes")).length, 1);
});

test("build.gradle has the task once, with the newest options", async () => {
  const { gradle } = await prebuild({ indexes: "out's", symdex: "/opt/symdex" }, 2);
  assert.ok(gradle.startsWith(GRADLE.trimEnd()));
  assert.equal(gradle.split("tasks.register('symdexIndexes'").length, 2);
  assert.ok(gradle.includes("ext.symdexIndexes = new File(rootDir, '../out\\'s').path"));
  const again = addGradleTask(`${gradle}// more\n`, { symdex: "other" });
  assert.ok(again.includes("ext.symdex = 'other'") && !again.includes("/opt/symdex") && again.endsWith("// more\n"));
});

test("a folder outside of the project is as given", async () => {
  const { project, gradle } = await prebuild({ indexes: "/srv/indexes" });
  const settings = project.pbxXCBuildConfigurationSection()[ids.release].buildSettings;
  assert.equal(unquoted(settings.SYMDEX_INDEXES), "/srv/indexes");
  assert.ok(gradle.includes("ext.symdexIndexes = '/srv/indexes'"));
});

test("a build.gradle in Kotlin is refused", async () => {
  const config = withSymdex({ name: "App", slug: "app" });
  const mod = config.mods.android.appBuildGradle;
  const results = { language: "kt", contents: "" };
  const request = { nextMod: (given) => given };
  await assert.rejects(async () => mod({ ...config, modRequest: request, modResults: results }), /not in Groovy/);
});

test("the package has all files that it needs", () => {
  const folder = temporaryFolder();
  execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: here });
  const [archive] = fs.readdirSync(folder);
  const files = execFileSync("tar", ["-tzf", path.join(folder, archive)], { encoding: "utf8" }).trim().split("\n");
  const plugin = ["README.md", "app.plugin.d.ts", "app.plugin.js", "package.json"];
  const expected = [...plugin, "symdex-build-phase.sh", "symdex.gradle"];
  assert.deepEqual(files.map((file) => file.replace("package/", "")).sort(), expected);
});
