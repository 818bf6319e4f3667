package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/rollout"
	"github.com/musterhq/muster/internal/slice"
)

// AgentCommands bring versions of the agent to the devices of all companies.
type AgentCommands struct {
	Release AgentRelease `cmd:"" help:"Add a signed file of a version of the agent: an Android app, or a program."`
	Rollout AgentRollout `cmd:"" help:"Bring a version to devices, a ring at a time, or let a paused rollout go on."`
	Pause   AgentPause   `cmd:"" help:"Pause every rollout: no device that has not begun gets a new version."`
	List    AgentList    `cmd:"" help:"List the releases, and how far they are rolled out."`
}

// AgentRelease adds a release.
type AgentRelease struct {
	Common
	File string `arg:"" placeholder:"FILE" help:"The signed file; - is standard input."`
}

// Run adds the file. Adding the same file again changes nothing.
func (c *AgentRelease) Run(env *Env) error {
	file, err := env.Input(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, rollout.MaxSize+1))
	if err != nil {
		return err
	}
	r, err := rollout.Read(content)
	if err != nil {
		return err
	}
	return c.open(env, Writes, func(ctx context.Context, admin *Admin) (answer, error) {
		if err := admin.Rollouts.AddRelease(ctx, r, content); err != nil {
			return answer{}, err
		}
		kept, err := admin.Rollouts.Releases(ctx)
		for _, k := range kept {
			if k.SHA256 == r.SHA256 {
				r = k // with the time when it was added first
			}
		}
		return answerf(viewRelease(r),
			"Added version %s (code %d) for %s, signed by %s.\nNo device gets it before `muster agent rollout %s`.\n",
			r.Version, r.Code, r.Package, r.Signer, r.Version), err
	})
}

// AgentRollout begins a rollout.
type AgentRollout struct {
	Common
	Version string `arg:"" help:"The version, as muster agent list shows it."`
	Percent *int   `name:"percent" placeholder:"N" help:"How many percent of the installation's devices get the version in the end; by default as many as before, and 100 for a new rollout. A larger number later goes on from there."`
}

// Validate checks that the percentage is from 1 to 100.
func (c *AgentRollout) Validate() error {
	if c.Percent != nil && (*c.Percent < 1 || *c.Percent > 100) {
		return fmt.Errorf("--percent %d is not between 1 and 100", *c.Percent)
	}
	return nil
}

// Run begins the rollout, or continues a paused one.
func (c *AgentRollout) Run(env *Env) error {
	return c.open(env, Writes, func(ctx context.Context, admin *Admin) (answer, error) {
		before, err := admin.Rollouts.Rollouts(ctx)
		if err != nil {
			return answer{}, err
		}
		r, err := admin.Rollouts.BeginRollout(ctx, c.Version, deref(c.Percent))
		return answer{viewRollout(r, rollout.Progress{}), func(w io.Writer) {
			for _, other := range before {
				if other.Version != r.Version && (other.State == rollout.Running || other.State == rollout.Paused) {
					fmt.Fprintf(w, "The rollout of version %s ends at %d percent.\n", other.Version, max(other.Ring, 0))
				}
			}
			fmt.Fprintf(w, "Version %s goes to %d percent of the devices, after rings of 1 and 10 percent if they are smaller. Each ring "+
				"begins when the devices of the ring before run the version.\nA running service begins within a minute; `muster agent "+
				"list` shows the progress.\n", r.Version, r.Goal)
		}}, err
	})
}

// AgentPause pauses rollouts.
type AgentPause struct{ Common }

// Run pauses them all.
func (c *AgentPause) Run(env *Env) error {
	return c.open(env, Writes, func(ctx context.Context, admin *Admin) (answer, error) {
		n, err := admin.Rollouts.PauseRollouts(ctx)
		return answerf(map[string]int{"paused": n},
			"Paused %s. Devices that have begun finish; `muster agent rollout VERSION` goes on to the same percentage.\n",
			phrase.Count(n, "rollout", "rollouts")), err
	})
}

// AgentList shows releases and rollouts.
type AgentList struct{ Common }

// releaseView is rollout.Release as -o json shows it.
type releaseView struct {
	Version string               `json:"version"`
	Package string               `json:"package"`
	Code    int64                `json:"code"`
	SHA256  string               `json:"sha256"`
	Bytes   int64                `json:"bytes"`
	Signer  string               `json:"signer"`
	AddedAt *operation.Timestamp `json:"addedAt"`
}

func viewRelease(r rollout.Release) releaseView {
	return releaseView{Version: r.Version, Package: r.Package, Code: r.Code, SHA256: r.SHA256, Bytes: r.Size, Signer: r.Signer,
		AddedAt: operation.TimestampOf(r.AddedAt)}
}

// rolloutView is rollout.Rollout with its progress as -o json shows it.
type rolloutView struct {
	Version string               `json:"version"`
	State   rollout.State        `json:"state"`
	Reason  string               `json:"reason,omitempty"`
	Percent int                  `json:"percent"` // at which the present ring ends; 0: none has begun
	Goal    int                  `json:"goal"`
	Devices int                  `json:"devices"` // of the installation that the version is for
	Ring    int                  `json:"ring"`    // devices of the present ring
	Updated int                  `json:"updated"` // of the ring, in touch with the service on the version
	Began   int                  `json:"began"`
	Failed  []troubleView        `json:"failed"`
	Lost    []troubleView        `json:"lost"`
	BeganAt *operation.Timestamp `json:"beganAt"`
}

// troubleView is a device on which a version failed, or which was lost after its update.
type troubleView struct {
	Company string               `json:"company"`
	AssetID string               `json:"assetId"`
	Detail  string               `json:"detail,omitempty"`
	SeenAt  *operation.Timestamp `json:"seenAt"`
}

func viewRollout(r rollout.Rollout, p rollout.Progress) rolloutView {
	return rolloutView{Version: r.Version, State: r.State, Reason: r.Reason, Percent: r.Ring, Goal: r.Goal,
		Devices: p.Devices, Ring: p.Members, Updated: p.Updated, Began: p.Began, Failed: slice.Map(p.Failed, viewTrouble),
		Lost:    slice.Map(p.Lost, viewTrouble),
		BeganAt: operation.TimestampOf(r.BeganAt)}
}

func viewTrouble(m rollout.Member) troubleView {
	return troubleView{Company: m.CompanySlug, AssetID: m.AssetID, Detail: m.Detail, SeenAt: operation.TimestampOf(m.SeenAt)}
}

// agentView is what `muster agent list -o json` prints.
type agentView struct {
	Releases []releaseView `json:"releases"`
	Rollouts []rolloutView `json:"rollouts"`
}

// Run shows them.
func (c *AgentList) Run(env *Env) error {
	return c.open(env, Reads, func(ctx context.Context, admin *Admin) (answer, error) {
		releases, err := admin.Rollouts.Releases(ctx)
		if err != nil {
			return answer{}, err
		}
		codes, err := rollout.Codes(releases)
		if err != nil {
			return answer{}, err
		}
		view := agentView{Releases: slice.Map(releases, viewRelease), Rollouts: []rolloutView{}}
		rollouts, err := admin.Rollouts.Rollouts(ctx)
		if err != nil {
			return answer{}, err
		}
		for _, r := range rollouts {
			p, err := rollout.Look(ctx, admin.Rollouts, r, codes[r.Version], env.Now())
			if err != nil {
				return answer{}, err
			}
			view.Rollouts = append(view.Rollouts, viewRollout(r, p))
		}
		return answer{view, view.show}, nil
	})
}

func (v agentView) show(w io.Writer) {
	row(w, "VERSION", "PACKAGE", "CODE", "BYTES", "ADDED", "SIGNER")
	for _, r := range v.Releases {
		row(w, r.Version, r.Package, strconv.FormatInt(r.Code, 10), strconv.FormatInt(r.Bytes, 10), day(r.AddedAt.Time), r.Signer)
	}
	row(w)
	row(w, "ROLLOUT", "STATE", "PERCENT", "DEVICES", "IN RING", "UPDATED", "BEGAN", "FAILED", "LOST")
	for _, r := range v.Rollouts {
		row(w, r.Version, string(r.State), fmt.Sprintf("%d of %d", r.Percent, r.Goal), strconv.Itoa(r.Devices), strconv.Itoa(r.Ring),
			strconv.Itoa(r.Updated), strconv.Itoa(r.Began), strconv.Itoa(len(r.Failed)), strconv.Itoa(len(r.Lost)))
	}
	for _, r := range v.Rollouts {
		if r.Reason != "" {
			fmt.Fprintf(w, "\n%s is %s: %s\n", r.Version, r.State, r.Reason)
		}
		showTroubles(w, r.Version+" failed on", r.Failed)
		showTroubles(w, r.Version+" was lost on", r.Lost)
	}
}

// maxTroubles is how many devices the text names; -o json names all.
const maxTroubles = 20

func showTroubles(w io.Writer, what string, all []troubleView) {
	for _, t := range all[:min(len(all), maxTroubles)] {
		fmt.Fprintf(w, "%s %s/%s, last seen %s %s\n", what, t.Company, t.AssetID, day(t.SeenAt.Time), t.Detail)
	}
}
