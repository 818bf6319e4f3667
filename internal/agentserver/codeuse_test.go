package agentserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/agentserver"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/policy"
	"github.com/musterhq/muster/internal/provisioning"
)

// asks returns a request of a new device with a token.
func asks(t *testing.T, serial, token string) protocol.EnrollRequest {
	t.Helper()
	key, err := protocol.NewPrivateKey(protocol.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	r := protocol.EnrollRequest{Token: token, Role: protocol.Manager, Time: time.Now().UnixMilli()}
	r.Facts, _ = json.Marshal(protocol.Facts{SerialNumber: serial, Brand: "Acme"})
	if r.Key, err = key.Public(); err != nil {
		t.Fatal(err)
	}
	if r.Proof, err = key.Sign(protocol.EnrollMessage(r.Token, r.Key, r.Facts, r.Time)); err != nil {
		t.Fatal(err)
	}
	return r
}

// limited makes a token of a code for some devices.
func (w *world) limited(devices int) provisioning.Token {
	w.t.Helper()
	s := &provisioning.Service{Catalog: w.db, Codes: w.db, Records: w.db, Now: time.Now,
		Issuers: map[policy.Type]provisioning.Issuer{policy.Agent: w.link}}
	p := access.Principal{Kind: access.System, ID: "operator", CompanyID: w.company.ID, CompanySlug: "acme"}
	token, _, err := s.Issue(w.t.Context(), p,
		provisioning.Request{PolicyID: w.policy.ID, Limits: provisioning.Limits{Devices: devices, Tags: []string{"store-12"}}})
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}

// Of many devices at once a code for three enrolls three, of which each may ask again; one
// that was revoked enrolls none.
func TestEnroll_CodeForSeveralDevices(t *testing.T) {
	w := newWorld(t)
	token := w.limited(3)
	var mu sync.Mutex
	var all sync.WaitGroup
	enrolled := []protocol.EnrollRequest{}
	for n := range 8 {
		r := asks(t, fmt.Sprintf("SN-%d", n), token.Text)
		all.Go(func() {
			if _, err := w.link.Enroll(t.Context(), r); err == nil {
				mu.Lock()
				defer mu.Unlock()
				enrolled = append(enrolled, r)
			}
		})
	}
	all.Wait()
	if len(enrolled) != 3 {
		t.Fatalf("%d devices enrolled with a code for three", len(enrolled))
	}
	for _, r := range enrolled {
		if _, err := w.link.Enroll(t.Context(), r); err != nil {
			t.Errorf("a device that asks again: %v", err)
		}
	}
	codes, err := w.db.Codes(t.Context(), w.company.ID, nil, 10)
	if err != nil || len(codes) != 1 || codes[0].Devices != 3 || codes[0].Status(time.Now()) != provisioning.CodeUsed {
		t.Errorf("codes: %+v, %v", codes, err)
	}
	revoked := w.limited(3)
	if _, err := w.link.Enroll(t.Context(), asks(t, "SN-20", revoked.Text)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.db.RevokeCode(t.Context(), w.company.ID, nil, revoked.Code); err != nil {
		t.Fatal(err)
	}
	if _, err := w.link.Enroll(t.Context(), asks(t, "SN-21", revoked.Text)); err == nil {
		t.Error("a device enrolled with a code that was revoked")
	}
}

// importing is an Enroller while an import of the company runs.
type importing struct{ agentserver.Enroller }

func (importing) EnrollAgent(context.Context, agentdevice.Enrollment, enrollment.Observation) (agentdevice.Device, error) {
	return agentdevice.Device{}, fault.New(fault.Unavailable, "devices of the company are being imported")
}

// A device that cannot enroll at this moment keeps its token, and is told when to ask again.
func TestEnroll_DuringAnImport(t *testing.T) {
	w := newWorld(t)
	r := asks(t, "SN-1", w.limited(1).Text)
	w.link.Enroller = importing{w.db}
	_, err := w.link.Enroll(t.Context(), r)
	refused, is := errors.AsType[*protocol.Refusal](err)
	if !is || refused.Code != protocol.Busy || refused.RetryAfter == 0 {
		t.Errorf("refusal = %v, want busy, with a time to ask again", err)
	}
	w.link.Enroller = w.db
	if _, err := w.link.Enroll(t.Context(), r); err != nil {
		t.Errorf("after the import: %v", err)
	}
}
