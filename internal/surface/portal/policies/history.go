package policies

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/signature"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// maxRevisions is how many revisions the page lists.
const maxRevisions = 100

// past is the history of a policy, and what two of its revisions differ in.
type past struct {
	All      []policy.Revision
	Changed  []string // by each of them, in words
	From, To int      // compared; 0: none
	Diff     policy.Diff
}

// revisions lists the history, newest first, and compares any two.
func (s *Section) revisions(v *frame.Visit, p policy.Policy) error {
	all, err := s.Policies.Revisions(v.Context(), v.Principal, p.ID, maxRevisions+1)
	if err != nil {
		return err
	}
	h := past{All: all[:min(len(all), maxRevisions)]}
	if h.Changed, err = changesOf(p.Type, all); err != nil {
		return err
	}
	if from, to := v.Numbers["from"], v.Numbers["to"]; from > 0 && to > 0 && from != to {
		h.From, h.To = int(min(from, to)), int(max(from, to))
		h.Diff, err = s.Policies.Compare(v.Context(), v.Principal, p.ID, h.From, h.To)
		if fault.CodeOf(err) == fault.NotFound {
			return frame.WrongQuery(fmt.Sprintf("the policy has no revision %d, or no revision %d: choose two of the list", h.From, h.To))
		}
		if err != nil {
			return err
		}
	}
	return v.Show(p.Name+": revisions", frame.PoliciesPath, revisionsPage(v, sheet{Policy: p, Tab: "revisions"}, h))
}

// changesOf says what each revision changed; all are in order, newest first. One more
// than are shown is only compared with.
func changesOf(t policy.Type, all []policy.Revision) ([]string, error) {
	var changed []string
	for i, r := range all {
		if i+1 == len(all) {
			changed = append(changed, "Created")
			break
		}
		d, err := policy.Compare(t, all[i+1], r)
		if err != nil {
			return nil, err
		}
		changed = append(changed, changeWords(d))
	}
	return changed, nil
}

// changeWords is what a revision changed, in one line.
func changeWords(d policy.Diff) string {
	var parts []string
	if d.Name != nil {
		parts = append(parts, "name: "+frame.Plain(d.Name[0])+" → "+frame.Plain(d.Name[1]))
	}
	for _, m := range d.Moves {
		parts = append(parts, m.Setting.Label+": "+frame.SettingWord(m.Setting.Label, m.From)+" → "+
			frame.SettingWord(m.Setting.Label, m.To))
	}
	parts = append(parts, d.Unnamed()...)
	return cmp.Or(short(parts), "Nothing")
}

// short is the first parts of a list in one line, and how many more there are.
func short(parts []string) string {
	const most = 3
	if len(parts) <= most {
		return strings.Join(parts, ", ")
	}
	return strings.Join(parts[:most], ", ") + ", " + frame.Count(len(parts)-most, "more", "more")
}

// restore goes back to a revision: by a proposal of the person's own, or for an
// agent's policy by saving it.
func (s *Section) restore(v *frame.Visit, p policy.Policy) error {
	revision, err := strconv.Atoi(v.Form.Get("revision"))
	if err != nil {
		return fault.Invalid("the form names no revision")
	}
	back := frame.PolicyPath(p.ID) + "/revisions"
	if p.Type == policy.Platform {
		return s.propose(v, "rollback_policy", map[string]any{"policyId": p.ID, "revision": revision}, back)
	}
	version, err := seenVersion(v)
	if err != nil {
		return err
	}
	after, err := s.Policies.Restore(v.Context(), v.Principal, p.ID, version, revision)
	if c, ok := errors.AsType[*policy.Conflict](err); ok {
		return v.ShowStatus(http.StatusConflict, p.Name, frame.PoliciesPath,
			conflictPage(v, sheet{Policy: c.Current, Tab: "revisions"}, c, nil))
	}
	if err != nil {
		return v.Refused(back, err, fault.Refused, fault.Unavailable)
	}
	if after.Version == p.Version {
		return v.Redirect(back, frame.Flash{Tone: frame.Idle, Text: "The policy is as it was at this revision."})
	}
	return v.Redirect(back, frame.Done("Rolled back to revision "+strconv.Itoa(revision)+", saved as version "+
		strconv.Itoa(after.Version)+"."))
}

// shownDevices is how many devices a tab or a review shows; the list of
// devices has them all.
const shownDevices = 20

func (s *Section) some(v *frame.Visit, policyID string) ([]asset.Asset, error) {
	some, _, err := s.Assets.Assets(v.Context(), asset.Query{
		Filter: asset.Filter{CompanyID: v.Company.ID, PolicyID: policyID, Policies: v.Principal.Policies},
		Order:  asset.BySyncedAt, Descending: true, Page: operation.PageRequest{Size: shownDevices}})
	return some, err
}

// devices shows which devices are under the policy, and what they applied.
func (s *Section) devices(v *frame.Visit, p policy.Policy) error {
	some, err := s.some(v, p.ID)
	return v.ShowUnless(err, p.Name+": devices", frame.PoliciesPath, devicesPage(v, sheet{Policy: p, Tab: "devices"}, some))
}

// document shows the whole document, to read: its members are in the order of the form
// that decisions about the policy hash.
func (s *Section) document(v *frame.Visit, p policy.Policy) error {
	var pretty bytes.Buffer
	err := json.Indent(&pretty, signature.Hashed(p.Document), "", "  ")
	if err != nil {
		return err
	}
	apps := []policy.App{}
	if p.Type == policy.Platform {
		if apps, err = policy.Apps(p.Document); err != nil {
			return err
		}
	}
	return v.Show(p.Name+": document", frame.PoliciesPath, documentPage(v, sheet{Policy: p, Tab: "json"}, pretty.String(), apps))
}

// chosen says whether a revision is marked for comparison: what was compared,
// else the newest two.
func chosen(h past, number, compared int, byItself bool) bool {
	return frame.Either(h.From > 0, number == compared, byItself)
}
