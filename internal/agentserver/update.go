package agentserver

import (
	"context"
	"regexp"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/rollout"
	"github.com/musterhq/muster/internal/validate"
)

// Limits of what a device says of its agent, in characters.
const (
	maxVersion      = 64
	maxUpdateDetail = 300
)

// packageForm is that of what updates are built for.
var packageForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,150}$`)

// update notes which agent runs and what became of its update, and adds the update that
// the device is to install.
func (l *Server) update(ctx context.Context, d agentdevice.Device, r protocol.CheckinRequest, now time.Time,
	answer *protocol.CheckinResponse) error {
	build := agentdevice.Build{Version: validate.Clean(r.AgentVersion, maxVersion)}
	if r.Build != nil && r.Build.Code >= 0 && packageForm.MatchString(r.Build.Package) && !d.IsCompanion() {
		build.Package, build.Code = r.Build.Package, r.Build.Code
	}
	if build != d.Build {
		if err := l.Store.UpdateAgent(ctx, d.ID, agentdevice.Change{Build: &build}); err != nil {
			return err
		}
	}
	if l.Updates == nil || build.Package == "" {
		return nil
	}
	confirmed, err := l.updateTold(ctx, d, r.Update)
	if err != nil {
		return err
	}
	answer.UpdateTold = confirmed
	ready := ""
	if r.Update != nil && r.Update.State == protocol.UpdateReady {
		ready = r.Update.SHA256
	}
	offer, there, err := l.Updates.OfferUpdate(ctx, d.ID, ready)
	if err != nil || !there {
		return err
	}
	sealed, err := l.seal(d, protocol.KindUpdate,
		protocol.Update{DeviceID: d.ID, Package: offer.Package, Version: offer.Version, Code: offer.Code,
			File: protocol.File{SHA256: offer.SHA256, Size: offer.Size}, Number: d.LastSequence, Time: now.UnixMilli()})
	answer.Update = &sealed
	return err
}

// updateTold keeps a final word, and returns it to confirm that.
func (l *Server) updateTold(ctx context.Context, d agentdevice.Device, reported *protocol.UpdateReport) (*protocol.UpdateReport, error) {
	if reported == nil {
		return nil, nil
	}
	outcome, final := map[protocol.UpdateState]rollout.Outcome{protocol.UpdateInstalled: rollout.Installed,
		protocol.UpdateFailed: rollout.Failed, protocol.UpdateWentBack: rollout.WentBack}[reported.State]
	if !final {
		return nil, nil
	}
	err := l.Updates.UpdateTold(ctx, d.ID, rollout.Word{SHA256: validate.Clean(reported.SHA256, maxVersion), Outcome: outcome,
		Detail: validate.Clean(reported.Detail, maxUpdateDetail)})
	return reported, err
}

// FileSize implements agentapi.Service.
func (l *Server) FileSize(ctx context.Context, d agentdevice.Device, sha256 string) (int64, error) {
	if l.Updates == nil {
		return 0, noFile(fault.New(fault.NotFound, "no files"))
	}
	size, err := l.Updates.ReleaseSize(ctx, d.ID, sha256)
	return size, noFile(err)
}

// FilePart implements agentapi.Service.
func (l *Server) FilePart(ctx context.Context, d agentdevice.Device, sha256 string, number int64) ([]byte, error) {
	part, err := l.Updates.ReleasePart(ctx, d.ID, sha256, number)
	return part, noFile(err)
}

func noFile(err error) error {
	if fault.CodeOf(err) == fault.NotFound {
		return &protocol.Refusal{Code: protocol.NotFound, Message: "this device was offered no such file"}
	}
	return err
}
