#!/bin/sh
# A build phase of Xcode: builds the index of the product's dSYM. README.md says how to add it.
#
# The build setting SYMDEX_INDEXES is the folder for the indexes. Without it, SYMDEX_SERVER is the URL of the server that
# gets them. With neither, they go to the stores in SYMDEX_STORE.
# The build setting SYMDEX is the program.
set -eu

# Xcode starts scripts with the PATH of the system.
PATH="$PATH:$HOME/.cargo/bin:/opt/homebrew/bin:/usr/local/bin"
symdex=${SYMDEX:-symdex}
# Xcode shows lines that begin with error: as errors.
fail() {
    echo "error: symdex: $1"
    exit 1
}

if [ "${DEBUG_INFORMATION_FORMAT:-dwarf-with-dsym}" != dwarf-with-dsym ]; then
    echo "note: symdex: no index, because DEBUG_INFORMATION_FORMAT is $DEBUG_INFORMATION_FORMAT"
    exit 0
fi
command -v "$symdex" >/dev/null || fail "$symdex is not installed; name it with the build setting SYMDEX"
dsym="$DWARF_DSYM_FOLDER_PATH/$DWARF_DSYM_FILE_NAME"
[ -f "$dsym/Contents/Resources/DWARF/$EXECUTABLE_NAME" ] ||
    fail "$dsym has no debug information of $EXECUTABLE_NAME; give this build phase the input files of input.xcfilelist"

set -- "$dsym" --require-all
# SYMDEX_SERVER may also come from the environment of xcodebuild.
if [ -n "${SYMDEX_INDEXES:-}" ]; then
    set -- build "$@" --output "$SYMDEX_INDEXES"
elif [ -n "${SYMDEX_SERVER:-}" ]; then
    set -- upload "$@" --server "$SYMDEX_SERVER"
elif [ -n "${SYMDEX_STORE:-}" ]; then
    set -- build "$@"
else
    fail "set the build setting SYMDEX_SERVER to a URL, SYMDEX_INDEXES to a folder, or SYMDEX_STORE to a store"
fi
# The ids of the product: a dSYM of another build is no match.
ids=$("$symdex" ids "$TARGET_BUILD_DIR/$EXECUTABLE_PATH") || fail "cannot read the ids of $EXECUTABLE_PATH"
for id in $(echo "$ids" | cut -d' ' -f1); do
    set -- "$@" --id "$id"
done
"$symdex" "$@" || fail "there is no index of $EXECUTABLE_PATH; see the messages above"

# Xcode runs the phase again only if an input file is newer.
[ -z "${SCRIPT_OUTPUT_FILE_0:-}" ] || touch "$SCRIPT_OUTPUT_FILE_0"
