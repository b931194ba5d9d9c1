#!/usr/bin/env bash
# The step of action.yml: runs `symdex build` or `symdex upload`, shows its messages as annotations, and writes the
# summary of the job.
# It runs in bash 3.2, too, which macOS has.
set -euo pipefail

program=$SYMDEX_PROGRAM
if ! command -v "$program" >/dev/null; then
    echo "::error::$program is not installed; install symdex before this step, or name it with the input symdex"
    exit 1
fi

# The lines of $1 that are not empty, appended to `arguments`.
add_lines() {
    local line
    while IFS= read -r line; do
        [ -z "${line//[[:space:]]/}" ] || arguments+=("$line")
    done <<<"$1"
}

if [ -n "$SYMDEX_SERVER_INPUT" ]; then
    arguments=(upload --server "$SYMDEX_SERVER_INPUT")
elif [ -n "$SYMDEX_OUTPUT" ]; then
    arguments=(build --output "$SYMDEX_OUTPUT")
elif [ -n "${SYMDEX_SERVER:-}" ]; then
    arguments=(upload --server "$SYMDEX_SERVER")
else
    arguments=(build)
fi
[ "$SYMDEX_REQUIRE_ALL" != true ] || arguments+=(--require-all)
add_lines "$SYMDEX_ARGUMENTS"
# A path that begins with a dash is no option.
arguments+=(--)
add_lines "$SYMDEX_INPUTS"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
code=0
"$program" "${arguments[@]}" >"$folder/out" 2>"$folder/messages" || code=$?

cat "$folder/out"
# % begins an escape in commands of the runner.
sed -e 's/%/%25/g' -e 's/^symdex: warning: /::warning::/' -e 's/^symdex: /::error::/' "$folder/messages"
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
    {
        echo "### symdex"
        echo '```'
        cat "$folder/out" "$folder/messages"
        echo '```'
    } >>"$GITHUB_STEP_SUMMARY"
fi
exit "$code"
