package database_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/enrollment"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/resource"
)

// A token leads to its device, from when that has its asset.
func TestAgent_OfToken(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.newPolicy("Headsets")
		hash := sha256.Sum256([]byte("token"))
		f.ok(f.db.CreateAgentToken(f.Context(), agentdevice.Token{Hash: hash, CompanyID: f.company.ID, PolicyID: p.ID,
			ExpiresAt: f.clock.Now().Add(time.Hour)}))
		none := func() {
			f.Helper()
			_, err := f.db.AgentOfToken(f.Context(), hash)
			f.code(fault.NotFound, err)
		}
		none()
		d := agentdevice.Device{ID: resource.NewID(), Role: protocol.Manager,
			Key:   protocol.PublicKey{Algorithm: protocol.Ed25519, SPKI: "k"},
			State: agentdevice.Active, EnrolledAt: f.clock.Now(), SeenAt: f.clock.Now()}
		enrolled, err := f.db.EnrollAgent(f.Context(), agentdevice.Enrollment{Hash: hash, Device: d, Again: f.clock.Now()}, f.agent("SN-1"))
		f.ok(err)
		got, err := f.db.AgentOfToken(f.Context(), hash)
		if f.ok(err); got.ID != d.ID || got.AssetID == "" || got.AssetID != enrolled.AssetID {
			f.Errorf("the token leads to %+v", got)
		}
	})
}

// agent is what an enrolling agent says of itself.
func (f *fixture) agent(serial string) enrollment.Observation {
	o := f.observation("")
	o.Management, o.Enrolling, o.EnrolledAt, o.SerialNumber, o.Brand = asset.Agent, true, o.ObservedAt, serial, "Acme"
	return o
}
