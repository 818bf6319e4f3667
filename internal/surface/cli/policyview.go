package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/policy"
)

// policyView is a policy as the API lists it, with how far the platform's copy
// has come.
type policyView struct {
	policy.Summary
	Push pushView `json:"push"`
}

type pushView struct {
	Version  int                  `json:"version"` // ours, that the platform holds; 0: none
	Error    string               `json:"error,omitempty"`
	PushedAt *operation.Timestamp `json:"pushedAt"`
}

type policyDetail struct {
	policyView
	Description string               `json:"description"`
	Labels      []string             `json:"labels"`
	Group       string               `json:"group"`
	CreatedAt   *operation.Timestamp `json:"createdAt"`
	Document    json.RawMessage      `json:"document"`
}

// printDetail shows a policy to people: what is wanted, what the platform
// holds, and the document.
func printDetail(w io.Writer, p policy.Policy) {
	row(w, "Policy:", p.PathName())
	row(w, "Name:", p.Name)
	row(w, "Type:", policyType(p))
	row(w, "Version:", strconv.Itoa(p.Version)+", saved "+day(p.UpdatedAt))
	if p.Type == policy.Platform {
		row(w, "At the platform:", pushed(p))
	}
	row(w, "Devices:", strconv.Itoa(p.DeviceCount))
	for _, one := range [][2]string{{"Description:", p.Description}, {"Labels:", strings.Join(p.Labels, ", ")}, {"Group:", p.Group}} {
		if one[1] != "" {
			row(w, one[0], one[1])
		}
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, p.Document, "", "  ") != nil {
		pretty.Write(p.Document)
	}
	fmt.Fprintf(w, "\n%s\n", pretty.Bytes())
}

func viewPolicy(p policy.Policy) policyView {
	return policyView{p.Summary(), pushView{p.Push.Version, p.Push.Error, operation.TimestampOf(p.Push.PushedAt)}}
}

func showPolicy(verb string, p policy.Policy, note string) answer {
	return answer{viewPolicy(p), func(w io.Writer) {
		fmt.Fprintf(w, "%s %s (%s), %s, version %d.\n", verb, p.PathName(), p.Name, policyType(p), p.Version)
		if note != "" {
			fmt.Fprintln(w, note)
		}
	}}
}

func policyType(p policy.Policy) string {
	return string(p.Type) + phrase.Either(p.VROnly, " (VR only)", "")
}

// pushed says how far the platform's copy has come.
func pushed(p policy.Policy) string {
	switch {
	case p.Type != policy.Platform:
		return "-"
	case p.Push.Error != "":
		return "failed: " + p.Push.Error
	case p.Behind() && p.Push.Version == 0:
		return "not yet"
	case p.Behind():
		return "version " + strconv.Itoa(p.Push.Version)
	default:
		return "current"
	}
}

// PolicySettings shows settings.
type PolicySettings struct{ OfPolicy }

// Run prints the settings as contract 2.4 has them.
func (c *PolicySettings) Run(env *Env) error {
	return c.with(env, func(_ context.Context, _ *Admin, _ company.Company, p policy.Policy) (answer, error) {
		values, err := policy.View(p.Type, p.Document)
		view := policy.Settings{PolicyID: p.PathName(), DisplayName: p.Name, Version: p.Version, DeviceCount: p.DeviceCount,
			Editable: p.Editable(), Settings: values}
		return answer{view, func(w io.Writer) {
			row(w, "GROUP", "SETTING", "VALUE", "ALLOWED")
			for _, v := range values {
				row(w, v.Group, v.ID, v.Value, strings.Join(v.AllowedValues, ", "))
			}
		}}, err
	})
}

// PolicyRevisions lists revisions.
type PolicyRevisions struct {
	OfPolicy
	Limit int `name:"limit" default:"20" help:"How many to show, at least 1."`
}

// Validate wants at least one.
func (c *PolicyRevisions) Validate() error { return atLeastOne("limit", &c.Limit) }

// Run prints the revisions.
func (c *PolicyRevisions) Run(env *Env) error {
	return c.with(env, func(ctx context.Context, admin *Admin, owner company.Company, p policy.Policy) (answer, error) {
		all, err := admin.Policies.Store.Revisions(ctx, owner.ID, p.ID, c.Limit)
		header := []string{"REVISION", "VERSION", "SAVED", "BY", "ORIGIN", "NAME"}
		return list(all, policy.Revision.Record, header, func(r policy.Revision) []string {
			return []string{strconv.Itoa(r.Revision), strconv.Itoa(r.Version), day(r.SavedAt), r.SavedBy.Name, string(r.Origin), r.Name}
		}), err
	})
}

// PolicyDiff compares revisions.
type PolicyDiff struct {
	OfPolicy
	From int  `name:"from" required:"" placeholder:"N" help:"The earlier revision."`
	To   *int `name:"to" placeholder:"N" help:"The later revision; by default what is current."`
}

// Validate wants revisions that there can be.
func (c *PolicyDiff) Validate() error {
	return cmp.Or(atLeastOne("to", c.To), atLeastOne("from", &c.From))
}

type diffView struct {
	PolicyID string      `json:"policyId"`
	Fields   []fieldView `json:"fields"`
	Others   []string    `json:"others"` // members that no setting names
}

type fieldView struct {
	Setting       string `json:"setting,omitempty"`
	Label         string `json:"label"`
	PreviousValue string `json:"previousValue"`
	Value         string `json:"value"`
}

// Run prints the difference.
func (c *PolicyDiff) Run(env *Env) error {
	return c.with(env, func(ctx context.Context, admin *Admin, owner company.Company, p policy.Policy) (answer, error) {
		diff, err := admin.Policies.Diff(ctx, p, c.From, deref(c.To))
		view := diffView{PolicyID: p.PathName(), Fields: []fieldView{}, Others: append([]string{}, diff.Unnamed()...)}
		if diff.Name != nil {
			view.Fields = append(view.Fields, fieldView{"", "Name", diff.Name[0], diff.Name[1]})
		}
		for _, move := range diff.Moves {
			view.Fields = append(view.Fields, fieldView{move.Setting.ID, move.Setting.Label, move.From, move.To})
		}
		return answer{view, func(w io.Writer) {
			row(w, "SETTING", "WAS", "IS")
			for _, f := range view.Fields {
				row(w, f.Label, f.PreviousValue, f.Value)
			}
			for _, other := range view.Others {
				row(w, other, "differs")
			}
		}}, err
	})
}

// PolicyContent is what a policy is beside its settings.
type PolicyContent struct {
	Document    string   `name:"document" placeholder:"FILE" help:"The whole document as JSON, in the platform's own form for PLATFORM policies: apps, restrictions and all; settings are applied on top. - reads standard input."`
	Description *string  `name:"description" help:"What the policy is for: at most 1000 characters."`
	Label       []string `name:"label" sep:"none" help:"A label of at most 64 characters; repeat for more, at most 50."`
	Group       *string  `name:"group" help:"The group of policies that it belongs to: at most 64 characters."`
}

// Validate refuses texts that no policy can get as bad usage.
func (c PolicyContent) Validate() error {
	return policy.Edit{Description: c.Description, Labels: &c.Label, Group: c.Group}.Check()
}

// read reads the changes of settings, and the document, that were given.
func (c PolicyContent) read(env *Env, values SettingValues) (changes []policy.Change, document []byte, err error) {
	if changes, err = values.changes(); err == nil {
		document, err = c.document(env)
	}
	return changes, document, err
}

// document reads the document that was given; nil if none was.
func (c PolicyContent) document(env *Env) ([]byte, error) {
	if c.Document == "" {
		return nil, nil
	}
	file, err := env.Input(c.Document)
	if err != nil {
		return nil, fault.Invalid("cannot open the document: " + err.Error())
	}
	defer file.Close() // it was only read
	what := c.Document
	if what == "-" {
		what = "standard input"
	}
	text, err := io.ReadAll(io.LimitReader(file, policy.MaxDocumentBytes+1))
	if err != nil {
		return nil, fault.Invalid("cannot read " + what + ": " + err.Error())
	}
	if len(text) > policy.MaxDocumentBytes {
		return nil, fault.Invalid(fmt.Sprintf("%s is larger than the %d bytes that a document may have", what, policy.MaxDocumentBytes))
	}
	return bytes.TrimSpace(text), nil
}

// systemUpdate reads the file with a systemUpdate; nil if none was given.
func (c *PolicySet) systemUpdate(env *Env) ([]byte, error) {
	text, err := PolicyContent{Document: c.SystemUpdate}.document(env)
	if err == nil && c.SystemUpdate != "" && len(text) == 0 {
		err = fault.Invalid("--system-update is empty: {} removes what the policy has")
	}
	return text, err
}

// deref is a flag's value, or the zero value of one that was not given.
func deref[T any](flag *T) (value T) {
	if flag != nil {
		value = *flag
	}
	return value
}
