package agentserver

import (
	"context"
	"sync"
	"time"

	"github.com/musterhq/muster/internal/resource"
)

const (
	// unknownEvery is how often unknown devices are logged: anyone can send their requests.
	unknownEvery = 15 * time.Minute
	// maxUnknown is how many unknown devices are told apart.
	maxUnknown = 10_000
)

// unknowns counts the devices that the database does not have and that were refused since
// they were logged last.
type unknowns struct {
	mu   sync.Mutex
	ids  map[string]struct{}
	told time.Time
}

// note counts a device. It returns how many devices are to be logged now; 0: none.
func (u *unknowns) note(device string, now time.Time) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ids == nil {
		u.ids = map[string]struct{}{}
	}
	if len(u.ids) < maxUnknown {
		u.ids[device] = struct{}{}
	}
	if ago := now.Sub(u.told); ago >= 0 && ago < unknownEvery {
		return 0
	}
	count := len(u.ids)
	u.ids, u.told = nil, now
	return count
}

// noteUnknown logs now and then how many devices were refused because the database does not
// have them, as it happens after a restore.
func (l *Server) noteUnknown(ctx context.Context, device string) {
	if !resource.IsID(device) { // no device was ever given such an id
		return
	}
	if count := l.unknown.note(device, l.Now()); count > 0 {
		l.Log.WarnContext(ctx, "devices refused that this database does not have: enroll them again if it was restored from a backup",
			"devices", count)
	}
}
