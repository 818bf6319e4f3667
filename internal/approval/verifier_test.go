package approval_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/approval"
	"github.com/musterhq/muster/internal/approval/approvaltest"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/signature"
)

// decided is a decision as a person signs it, and what there is when it is checked.
type decided struct {
	approval.Standing
	verifier approval.Verifier
	passkey  *approvaltest.Passkey
	head     signature.Head
}

// newDecided is an approval that counts. named is the name that is typed.
func newDecided(named string) *decided {
	passkey := approvaltest.NewPasskey()
	subject := approval.Loosening(access.Loosening{ID: "l1", CompanyID: "c1", Control: access.StopControl, Before: "ON", After: "OFF",
		AskedBy: access.Actor{ID: "u1", Name: "Ada"}, AskedAt: at(-5), EffectiveAt: at(60)}, "acme", at(-10_000))
	subject.Name = named
	return &decided{verifier: approvaltest.Verifier(), passkey: passkey,
		Standing: approval.Standing{Subject: subject, Credential: passkey.Credential(), Now: at(0),
			Approver: access.Approver{UserID: "u2", Manages: true, CreatedAt: at(-10_000), Passkeys: []time.Time{at(-10_000)}}},
		head: signature.Head{Approver: signature.Person{ID: "u2", Name: "Eve"}, Decision: signature.Approve, At: signature.Time(at(0)),
			Confirmation: named}}
}

// sign signs what there is.
func (d *decided) sign(t *testing.T) {
	t.Helper()
	document, err := d.Canonical(d.head, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.Signed = d.passkey.Sign(document)
}

// A decision counts if what was signed is what there is, by the passkey of a person who may.
func TestVerifier_Check(t *testing.T) {
	t.Parallel()
	other := approvaltest.NewPasskey()
	for _, c := range []struct {
		name   string
		named  string
		before func(d *decided) // it is signed
		after  func(d *decided)
		want   string // part of the refusal; empty: it counts
	}{
		{"an approval", "", nil, nil, ""},
		{"a decline", "", func(d *decided) { d.head.Decision = signature.Decline }, nil, ""},
		{"another decision", "", func(d *decided) { d.head.Decision = "MAYBE" }, nil, "has changed"},
		{"with the name that is asked for", "Office", nil, nil, ""},
		{"with another name", "Office", func(d *decided) { d.head.Confirmation = "Store" }, nil, "type the policy's name"},
		{"without the name", "Office", func(d *decided) { d.head.Confirmation = "" }, nil, "type the policy's name"},
		{"a decline without the name", "Office", func(d *decided) { d.head.Decision, d.head.Confirmation = signature.Decline, "" }, nil,
			""},
		{"a name where none is asked for", "", func(d *decided) { d.head.Confirmation = "Office" }, nil, "has changed"},
		{"of another person", "", func(d *decided) { d.head.Approver.ID = "u3" }, nil, "has changed"},
		{"about another subject", "", nil, func(d *decided) { d.ID = "l2" }, "has changed"},
		{"of another company", "", nil, func(d *decided) { d.Company = "other" }, "has changed"},
		{"in another domain", "", nil, func(d *decided) { d.Domain = signature.PolicyChange }, "has changed"},
		{"with another end", "", nil, func(d *decided) { d.Expires = at(61) }, "has changed"},
		{"no document", "", nil, func(d *decided) { d.Signed.Document = nil }, "has changed"},
		{"a person who is gone", "", nil, func(d *decided) { d.Approver = access.Approver{} }, "not there any more"},
		{"a person who may not", "", nil, func(d *decided) { d.Approver.Manages = false }, "may not decide"},
		{"another passkey is stored", "", nil, func(d *decided) { d.Credential = other.Credential() }, "no longer the person's"},
		{"a passkey that cannot be read", "", nil, func(d *decided) { d.Credential = json.RawMessage("{") }, "no longer the person's"},
		{"signed by another passkey", "", nil, func(d *decided) { d.Signed.Signature = other.Sign(d.Signed.Document).Signature },
			"does not count"},
		{"there are no passkeys", "", nil, func(d *decided) { d.verifier.Passkeys = nil }, "host name"},
		{"there is no service", "", nil, func(d *decided) { d.verifier.Service = nil }, "host name"},
	} {
		d := newDecided(c.named)
		if c.before != nil {
			c.before(d)
		}
		d.sign(t)
		if c.after != nil {
			c.after(d)
		}
		err := d.verifier.Check(d.Standing)
		if err == nil != (c.want == "") || err != nil && !strings.Contains(fault.From(err).Detail, c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if _, head, accepted := d.verifier.Accept(d.Standing); (accepted == nil) != (err == nil) ||
			err == nil && head.Decision != d.head.Decision {
			t.Errorf("%s: accepted as %q, %v, although checked: %v", c.name, head.Decision, accepted, err)
		}
	}
}

// What was decided stands as an approval while it still counts and the service accepted it.
func TestVerifier_Stands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		decision signature.Decision
		after    func(d *decided)
		want     string // part of the refusal; empty: it stands
	}{
		{"an approval", signature.Approve, func(*decided) {}, ""},
		{"a decline", signature.Decline, func(*decided) {}, "not approved"},
		{"something changed", signature.Approve, func(d *decided) { d.Company = "other" }, "has changed"},
		{"the person may not any more", signature.Approve, func(d *decided) { d.Approver.Disabled = true }, "disabled"},
		{"not accepted", signature.Approve, func(d *decided) { d.sign(t) }, "did not accept"},
		{"accepted by another service", signature.Approve, func(d *decided) { d.verifier.Service = approvaltest.Witness(1) },
			"another key file"},
	} {
		d := newDecided("")
		d.head.Decision = c.decision
		d.sign(t)
		var err error
		if d.Signed, _, err = d.verifier.Accept(d.Standing); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		c.after(d)
		if err := d.verifier.Stands(d.Standing); err == nil != (c.want == "") ||
			err != nil && !strings.Contains(fault.From(err).Detail, c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
