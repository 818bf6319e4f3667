#!/usr/bin/env bash
# make.sh MUSTER MUSTER_AGENT NAME DATABASE AGENTS PORT: makes one fixture with programs
# of the first version (README.md). It leaves NAME.answers.json and NAME.keys.json
# in the current directory; the database itself is dumped by the caller.
# AGENTS is how many devices with our own agent there are. PORT and the next one must be free.
set -euo pipefail
muster=$(realpath "$1") agent=$(realpath "$2") name=$3 agents=$5 port=$6
export MUSTER_DATABASE=$4
out=$PWD work=$(mktemp -d)
cd "$work"
base=http://127.0.0.1:$port platform=http://127.0.0.1:$((port + 1))
export MUSTER_KEY_FILE=$work/keys MUSTER_PUBLIC_URL=$base MUSTER_PLATFORM_ENDPOINT=$platform
"$muster" doctor --make-key-file keys >/dev/null
"$muster" emulator --listen "127.0.0.1:$((port + 1))" 2>emulator.log & emulator=$!
"$muster" serve --listen "127.0.0.1:$port" 2>serve.log & service=$!
trap 'kill $service $emulator 2>/dev/null || :' EXIT
for _ in $(seq 100); do curl -fs "$base/readyz" >/dev/null && break; sleep .1; done

cli() { "$muster" "$@" -o json; }
cli company create --slug acme --name Acme \
	--enable device-commands,destructive-commands,policy-changes,provisioning,oauth-connections >/dev/null
cli company create --slug other --name Other >/dev/null
cli company connect --company acme >/dev/null
echo 'correct horse battery' | cli user create --company acme --email admin@acme.test --role admin --password-stdin >/dev/null
warehouse=$(cli policy create --company acme --name Warehouse --type PLATFORM --set CAMERA=BLOCK | jq -r .pathName)
kiosk=$(cli policy create --company acme --name Kiosk --type AGENT --set CAMERA=BLOCK | jq -r .pathName)
cli policy create --company acme --name Headsets --type AGENT --vr-only >/dev/null
cli policy set --company acme "$warehouse" --set BLUETOOTH=BLOCK >/dev/null
# A key may send ten requests that change something a minute.
fresh() {
	key=$(cli key create --company acme --name "$1" --permission DEVICES_READ --permission DEVICES_COMMAND \
		--permission DEVICES_COMMAND_DESTRUCTIVE \
		--permission POLICIES_READ --permission POLICIES_WRITE --permission PROVISIONING | jq -r .key)
}
fresh codes
printf '%s\n' 'identification,serialNumber,model,manufacturer,brand,tags,Room' \
	'Spare 1,SP-1,Pixel 8,Google,google,spare;blue,B12' 'Spare 2,SP-2,Quest 3,Meta,oculus,,' >spare.csv
cli asset import --company acme --file spare.csv >/dev/null

api() { curl -sS -X "$1" -H "X-API-Key: $key" ${3:+-H 'Content-Type: application/json' -d "$3"} "$base/api/v1$2"; }
code() {
	api POST "/policies/${1##*/}/provisioning-qr-codes" '{}' | jq -r .image.data | base64 -d >code.png
	zbarimg -q --raw code.png
}
token=$(code "$warehouse" |
	jq -r '.["android.app.extra.PROVISIONING_ADMIN_EXTRAS_BUNDLE"]["com.google.android.apps.work.clouddpc.EXTRA_ENROLLMENT_TOKEN"]')
curl -sS -X POST "$platform/emulator/v1/devices" -d "{\"enrollmentToken\":\"$token\",\"count\":1}" >/dev/null
for n in $(seq "$agents"); do
	code "$kiosk" >bundle
	"$agent" enroll --bundle bundle --state "agent$n" --driver simulated >/dev/null
	"$agent" run --once --state "agent$n" --driver simulated 2>>agent.log
done
for _ in $(seq 100); do
	ids=$(api GET '/assets?size=100&status=ACTIVE' | jq -r '.content[].pathName')
	[ "$(wc -w <<<"$ids")" -gt "$agents" ] && break
	sleep .2
done
# Each device has carried out a command. For those with our own agent another waits.
fresh first
for id in $ids; do api POST "/assets/${id##*/}/commands/sync-policy" >/dev/null; done
sleep 2
for n in $(seq "$agents"); do "$agent" run --once --state "agent$n" --driver simulated 2>>agent.log; done
fresh second
for id in $ids; do
	api POST "/assets/${id##*/}/commands/lock" >/dev/null # refused for a device with our own agent
	api POST "/assets/${id##*/}/commands/message" '{"title":"Hello","body":"World"}' >/dev/null
	api POST "/assets/${id##*/}/commands/status-report" >/dev/null
done
fresh ci
proposal=$(api POST "/policies/${warehouse##*/}/changes" '{"changes":[{"setting":"SMS","value":"BLOCK"}]}' | jq -r .proposalId)

# An AI client that a person connected.
curl() { command curl -sS -c jar -b jar "$@"; }
curl -o /dev/null --data-urlencode email=admin@acme.test --data-urlencode 'password=correct horse battery' "$base/signin"
redirect=https://app.example.com/cb verifier=0123456789012345678901234567890123456789abc
client=$(curl -H 'Content-Type: application/json' "$base/oauth/register" \
	-d "{\"client_name\":\"Test\",\"redirect_uris\":[\"$redirect\"],\"token_endpoint_auth_method\":\"none\"}" | jq -r .client_id)
challenge=$(printf %s $verifier | openssl dgst -sha256 -binary | base64 | tr '+/' '-_' | tr -d '=')
request="response_type=code&client_id=$client&redirect_uri=https%3A%2F%2Fapp.example.com%2Fcb&state=s&scope=mcp%3Adevices%3Aread"
request="$request&code_challenge=$challenge&code_challenge_method=S256&resource=http%3A%2F%2F127.0.0.1%3A$port%2Fmcp"
granted=$(curl -i --data-urlencode "request=$request" -d scope=mcp:devices:read -d decision=allow "$base/oauth/authorize" |
	grep -o 'code=[A-Za-z0-9_-]*' | head -1)
tokens=$(curl "$base/oauth/token" -d grant_type=authorization_code -d "client_id=$client" -d "$granted" \
	--data-urlencode "redirect_uri=$redirect" -d code_verifier=$verifier)
session=$(awk 'NF==7{print $6"="$7}' jar | paste -sd';')
unset -f curl
sleep 4

# What is asked, and what is answered.
id() { jq -r '.content[].pathName' | sed 's#.*/##'; }
paths="/policy-proposals/$proposal /assets?size=100&sort=identification,asc /assets/count /policies?size=100"
for a in $(api GET '/assets?size=100' | id); do paths="$paths /assets/$a /assets/$a/commands?size=100"; done
for p in $(api GET '/policies?size=100' | id); do paths="$paths /policies/$p/revisions"; done
[ "$agents" = 0 ] || paths="$paths /policies/${kiosk##*/}/settings"
for p in $paths; do jq -c --arg path "$p" '{path:$path,answer:.}' <<<"$(api GET "$p")"; done >reads
for c in 'company list' 'company show acme' 'key list --company acme' 'user list --company acme' 'connection list --company acme' \
	"policy show --company acme $warehouse" \
	'activity list --company acme --limit 8'; do
	# shellcheck disable=SC2086 # the words are arguments
	jq -c --arg command "$c" '{command:$command,answer:.}' <<<"$(cli $c)"
done >commands
for n in $(seq "$agents"); do
	jq -nc --slurpfile identity "agent$n/identity.json" --slurpfile applied "agent$n/applied.json" --rawfile journal "agent$n/journal" \
		'{identity:$identity[0],applied:$applied[0],journal:$journal}'
done >devices
now=$(date -u +%FT%TZ)
kill -TERM $service
wait $service
jq -n --arg now "$now" --arg key "$key" --arg client "$client" --arg session "$session" --argjson tokens "$tokens" --slurpfile reads reads \
	--slurpfile commands commands --slurpfile agents devices \
	'{now:$now,key:$key,client:$client,tokens:$tokens,session:$session,reads:$reads,commands:$commands,agents:$agents}' >all.json
# One line for each answer, so that a change of one shows as such.
jq -r '"{", (to_entries | map("\(.key|tojson): " + (if .value|type == "array"
	then "[\n" + (.value|map(tojson)|join(",\n")) + "]" else .value|tojson end)) | join(",\n")), "}"' all.json >"$out/$name.answers.json"
jq -c . keys >"$out/$name.keys.json"
rm -rf "$work"
