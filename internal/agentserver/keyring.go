package agentserver

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/agentdevice"
	"github.com/musterhq/muster/internal/resource"
)

// maxKeys bounds the keyring: some 20 MiB.
const maxKeys = 100_000

// The requests that a replica answers each device. A device may send a burst,
// and gets the burst back within a minute: an agent that works as documented
// comes nowhere near.
const (
	RequestBurst = 600
	requestEvery = time.Minute / RequestBurst
)

// keyring remembers devices' keys, which seldom change, so that a request costs
// one statement of the database: that statement compares the key (Store.Contact).
// Beside each key it counts the device's requests.
type keyring struct {
	mu   sync.RWMutex
	keys map[string]*known // by device
}

// known is a device that has proved itself to this replica.
type known struct {
	key      protocol.PublicKey
	commands protocol.Algorithm // of the command key that the device was given
	// due is the theoretical arrival time of the generic cell rate algorithm (GCRA), in Unix
	// nanoseconds. A request moves it to requestEvery after the later of it and the present.
	// One that would move it more than RequestBurst times requestEvery ahead is refused.
	due *atomic.Int64
}

// spend counts one request. It returns how long the device has to wait if it
// sent too many, and zero otherwise.
func (k *known) spend(now time.Time) time.Duration {
	const ahead = int64(RequestBurst * requestEvery)
	present := now.UnixNano()
	for {
		before := k.due.Load()
		after := max(before, present) + int64(requestEvery)
		if before > present+2*ahead { // the clock was set back: begin again
			after = present + int64(requestEvery)
		}
		if after > present+ahead {
			return time.Duration(after - present - ahead)
		}
		if k.due.CompareAndSwap(before, after) {
			return 0
		}
	}
}

func (k *keyring) get(device string) *known {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.keys[device]
}

// put remembers a device's key and returns it with the count of the device's requests.
// A full ring starts again: what is used comes back.
func (k *keyring) put(device agentdevice.Device) *known {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys == nil || len(k.keys) >= maxKeys {
		k.keys = map[string]*known{}
	}
	one := &known{key: device.Key, commands: device.CommandAlgorithm, due: &atomic.Int64{}}
	if before := k.keys[device.ID]; before != nil {
		one.due = before.due
	}
	k.keys[device.ID] = one
	return one
}

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
