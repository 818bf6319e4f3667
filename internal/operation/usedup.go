package operation

import (
	"sync"
	"time"

	"github.com/musterhq/muster/internal/access"
)

// usedUp remembers, on this replica, whose budget is used up and until when. A
// window that is full stays full until it closes, so that the next call is refused
// without asking the store. The zero value is ready for use.
type usedUp struct {
	mu   sync.Mutex
	full map[string]fullWindow // by budget key
}

type fullWindow struct {
	left   Allowance
	closes time.Time
}

// note remembers a call that was refused.
func (u *usedUp) note(key string, left Allowance, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.full == nil {
		u.full = map[string]fullWindow{}
	}
	if len(u.full) >= maxWindows {
		for key, w := range u.full {
			if !now.Before(w.closes) {
				delete(u.full, key)
			}
		}
	}
	if len(u.full) < maxWindows { // else the store is asked, as before
		u.full[key] = fullWindow{left, now.Add(left.Reset)}
	}
}

// find returns what a call would be refused with; nil: ask the store. So it is
// after a clock was set back, too.
func (u *usedUp) find(key string, now time.Time) *Allowance {
	u.mu.Lock()
	defer u.mu.Unlock()
	w, known := u.full[key]
	if !known {
		return nil
	}
	w.left.Reset = w.closes.Sub(now)
	if w.left.Reset <= 0 || w.left.Reset > w.left.Window {
		delete(u.full, key)
		return nil
	}
	return &w.left
}

// UsedUp returns what a call of the operation would be refused with because the
// caller's budget is known to be used up; nil: it is not known to be, or the call
// spends none. A surface that acts on it passes it on in Meta, as the window may
// close at any moment.
func (k *Kernel) UsedUp(o *Operation, p access.Principal) *Allowance {
	if o.Budget == Free || o.Budget == BeforeValidation && !p.Permissions.Has(access.DevicesCommand) {
		return nil
	}
	return k.usedUp.find(o.accountOf(p), k.Now())
}
