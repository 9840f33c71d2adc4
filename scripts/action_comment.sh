#!/bin/sh
# Puts a text into the comment that an earlier run made for the same file, or into a new one.
#   scripts/action_comment.sh PULL-REQUEST FILE TEXT
# A comment is this action's own if the same account wrote it and it begins with the file's marker:
# a bot's account also comments for other actions. Needs gh, and GH_TOKEN.
set -eu
[ $# = 3 ] || {
	echo "usage: scripts/action_comment.sh PULL-REQUEST FILE TEXT" >&2
	exit 2
}
pull_request=$1
# The file's name comes from outside; as hexadecimal digits it can end neither comment nor query.
marker="<!-- fullpipe ci $(printf %s "$2" | od -An -v -tx1 | tr -d ' \n') -->"
body=$(mktemp)
trap 'rm -f "$body"' EXIT
{
	echo "$marker"
	cat "$3"
} >"$body"

comment=$(gh pr view "$pull_request" --json comments --jq \
	".comments | map(select(.viewerDidAuthor and (.body | startswith(\"$marker\")))) | last | .id // \"\"")
if [ -n "$comment" ]; then
	# shellcheck disable=SC2016 # variables of GraphQL
	gh api graphql --silent -f id="$comment" -F body=@"$body" -f query='
		mutation($id: ID!, $body: String!) {
			updateIssueComment(input: {id: $id, body: $body}) { issueComment { id } }
		}'
else
	gh pr comment "$pull_request" --body-file "$body"
fi
