package database_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/agentproto"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/name"
)

// A token leads to its device, from when that has its asset.
func TestAgentOfToken(t *testing.T) {
	withCompany(t, func(f *fixture) {
		p := f.newPolicy("Headsets")
		hash := sha256.Sum256([]byte("token"))
		f.ok(f.db.CreateAgentToken(f.Context(), agentdevice.Token{Hash: hash, CompanyID: f.company.ID, PolicyID: p.ID, ExpiresAt: f.clock.Now().Add(time.Hour)}))
		none := func() {
			f.Helper()
			_, err := f.db.AgentOfToken(f.Context(), hash)
			f.code(fault.NotFound, err)
		}
		none()
		d := agentdevice.Device{ID: name.NewID(), Role: agentproto.Manager, Key: agentproto.PublicKey{Algorithm: agentproto.Ed25519, SPKI: "k"},
			State: agentdevice.Active, EnrolledAt: f.clock.Now(), SeenAt: f.clock.Now()}
		_, _, _, err := f.db.RedeemAgentToken(f.Context(), hash, d, f.clock.Now())
		f.ok(err)
		none()
		change := f.observe(f.joined(d.ID, p.ID))
		f.ok(f.db.BindAgent(f.Context(), d.ID, change.AssetID, change.Epoch))
		got, err := f.db.AgentOfToken(f.Context(), hash)
		if f.ok(err); got.ID != d.ID || got.AssetID != change.AssetID {
			f.Errorf("the token leads to %+v", got)
		}
	})
}
