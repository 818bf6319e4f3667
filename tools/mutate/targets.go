package main

import (
	"path/filepath"
	"strings"
)

// target is a package whose conditions are drawn, and the tests that may notice their change.
type target struct {
	pkg   string   // relative to the root
	files []string // patterns; none: all files
	// slow are the patterns of the package's own tests, by patterns of files, where all of
	// them take minutes. A file that none of them names is tested by the last.
	slow []slowTests
	skip string  // the package's own tests that are not run; see kills
	wide []tests // of other packages, the fastest and likeliest first
}

type slowTests struct{ file, run string }

// tests are tests of packages; an empty pattern runs all, and skips none.
type tests struct {
	run, skip string
	packages  []string
}

func (t tests) String() string {
	return strings.TrimSpace("-run '" + t.run + "' " + strings.Join(t.packages, " "))
}

// own are the tests of the target's own package for one of its files.
func (t target) own(file string) tests {
	own := tests{skip: t.skip, packages: []string{"./" + t.pkg}}
	for _, s := range t.slow {
		own.run = s.run
		if ok, _ := filepath.Match(s.file, file); ok {
			break
		}
	}
	return own
}

// targets are the packages that decide what may be done. Of internal/database they are the
// files whose conditions decide who gets a row: claims, budgets, limits and decisions.
func targets() []target {
	contract := all("./test/contract")
	storage := tests{claims, kills, []string{"./internal/database"}}
	return []target{
		{pkg: "internal/access", wide: []tests{all("./internal/approval", "./internal/operation", "./internal/limit"),
			all("./internal/surface/rest", "./internal/account"), contract, all("./internal/command", "./internal/proposal"), storage}},
		{pkg: "internal/approval", wide: []tests{contract, all("./internal/proposal"), storage}},
		{pkg: "internal/limit", wide: []tests{contract, storage}},
		{pkg: "internal/operation", wide: []tests{all("./internal/surface/rest", "./internal/surface/mcp"), contract}},
		{pkg: "internal/command", wide: []tests{all("./internal/platform", "./internal/agentserver"), contract, storage}},
		{pkg: "internal/proposal", skip: kills, wide: []tests{all("./internal/platform"), contract, storage}},
		{pkg: "internal/agent", wide: []tests{all("./internal/agent/shell", "./internal/agent/simulated"),
			all("./internal/agentserver", "./internal/fleetsim")}},
		{pkg: "internal/database", files: claimFiles(), slow: slow(), skip: kills,
			wide: []tests{all("./internal/operation", "./internal/command"), all("./internal/proposal"), contract}},
	}
}

func all(packages ...string) tests { return tests{packages: packages} }

// kills are the tests that kill processes, or compare long random histories. They take minutes
// and look for what happens between two writes, not for conditions.
const kills = "Kill|Proposals_Linearizable|Proposals_Model|EverySetting"

// claims are the tests of internal/database that go through all claims.
const claims = "^Test(Begin|Decide|Claim|Lease|Budget|Ahead|Visit|Advance|Permit|Matrix|" +
	"OnTheWay|Void|ChangeControls|ConfirmLoosening|Withdraw|ToCancel|Transition|Abandon|Quota|" +
	"MergeAssets|CreateAssetToken|Key|Enrollment|Proposals|Revisions|SavePolicy)"

func claimFiles() (files []string) {
	for _, s := range slow() {
		files = append(files, s.file)
	}
	return files
}

// slow are the tests of each claim in internal/database, all of whose tests take minutes.
func slow() []slowTests {
	return []slowTests{
		{"acknowledge.go", "^Test(Visit|Advance|Transition|DropExpired|Abandon|Activity_Commands)"},
		{"authorization*.go", "^Test(Begin_|Decide|Void|Approvers|Attention|Authorizations_|SeenAuthorization)"},
		{"ahead.go", "^Test(Ahead|Budget|Quota|Begin_)"},
		{"budget.go", "^Test(Budget|Ahead)"},
		{"decision.go", "^Test(Decide|Begin_Auth|Begin_Forged|ConfirmLoosening|ChangeControls|Void|Proposals|Events_Proposals)"},
		{"delivery.go", "^Test(Visit|Advance|DropExpired|Transition|Abandon|Erased)"},
		{"idempotency.go", "^Test(Claim|Lease)"},
		{"key.go", "^Test(Key|AdmitKeys|Begin_|Permit|Ahead_AssetWithItsKey|Activity_Changes)"},
		{"limit.go", "^Test(Begin_|MergeAssets|CreateAssetToken|Permit)"},
		{"loosening.go", "^Test(ChangeControls|ConfirmLoosening|ApplyLoosenings|Permit)"},
		{"move.go", "^Test(Begin_|Matrix|OnTheWay|Claim_Counts|AssignPolicy|DeletePolicy_Move)"},
		{"permit.go", "^Test(Permit|AcceptInvitation|CreateSession)"},
		{"proposalclaim.go", "^Test(Matrix|OnTheWay|Claim_Counts|Begin_Move|Proposals|Pushes|Events_(Failed|Risen))"},
		{"proposaldecision.go", "^Test(Proposals|Matrix|Claim_Counts|Attention|Void)"},
		{"merge.go", "^Test(Begin_|MergeAssets|CreateAssetToken|ConfirmRequest)"},
		{"stop.go", "^Test(ChangeControls|Withdraw|ToCancel|Permit)"},
		{"visit.go", "^Test(Visit|Advance|DropExpired|Abandon)"},
		{"begin*.go", "^Test(Begin_|Command|Transition)"},
		{"command.go", "^Test(Begin_|Command|Transition|History|Open_Found|MarkDeleted|Abandon|Advance|Permit|Visit)"},
	}
}
