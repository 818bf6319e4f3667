package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/asset"
	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/script"
	"github.com/musterhq/muster/internal/surface/portal/frame"
	"github.com/musterhq/muster/internal/wait"
)

// history is what the demo's people and its assistant did before today.
type history struct {
	*filler
	day     int // the days that have passed
	errands int
}

// midnight is the beginning of one of the days.
func (h *history) midnight(day int) time.Time {
	return h.past.now().UTC().Truncate(24*time.Hour).AddDate(0, 0, day-daysOfHistory)
}

// pass lets days go by, with what people do on them.
func (h *history) pass(ctx context.Context, day int) {
	for h.day < day {
		h.day++
		script.Within(fmt.Sprintf("day %d of the demo's history", h.day), func() { h.workday(ctx) })
	}
}

// workday is one day. Ada and Bea take turns; there is no work on Sundays.
func (h *history) workday(ctx context.Context) {
	date := h.midnight(h.day)
	h.past.until(date.Add(7*time.Hour + time.Duration(h.day*13%50)*time.Minute))
	if date.Weekday() == time.Sunday {
		return
	}
	who := h.person([]string{portalUser, secondUser}[h.day%2])
	for n := range 3 + h.day*5%4 {
		h.past.until(date.Add(time.Duration(8+2*n)*time.Hour + time.Duration(h.errands*17%90)*time.Minute))
		h.errand(ctx, who)
	}
	if name, setting, value, ok := changeOn(h.day); ok {
		h.changePolicy(ctx, name, setting, value)
	}
}

// changeOn is the change of a policy that the assistant proposed and applied on a day. The
// devices that were off by then are behind since.
func changeOn(day int) (name, setting, value string, ok bool) {
	switch day {
	case 19:
		return "Field staff", "USB_DATA_ACCESS", "BLOCK", true
	case 24:
		return "Warehouse scanners", "SCREEN_CAPTURE", "BLOCK", true
	case 26:
		return "Bring your own", "SCREEN_CAPTURE", "BLOCK", true
	}
	return "", "", "", false
}

// errand is one command, by a person or by the assistant. A device that cannot take it
// gets another one.
func (h *history) errand(ctx context.Context, who *client.Person) {
	kinds := []struct {
		kind command.Type
		args []string
	}{
		{command.StatusReport, nil}, {command.Lock, nil}, {command.SyncPolicy, nil}, {command.Reboot, nil},
		{command.NotificationMessage, []string{"title", "Charge your device", "body", "Please put it on its charger before you leave."}},
	}
	h.errands++
	devices := h.enrolled(ctx)
	for i := range kinds {
		k, a := kinds[(h.errands+i)%len(kinds)], devices[h.errands*7%len(devices)]
		if command.Eligible(k.kind, a, false) != nil {
			continue
		}
		if h.errands%3 == 0 && k.args == nil {
			h.call(ctx, "/assets/"+a.ID+"/commands/"+rowOf(k.kind).Segment, map[string]any{})
			wait.For(ctx, settle)
		} else {
			h.send(ctx, who, a, k.kind, k.args...)
		}
		return
	}
}

// enrolled are the company's managed devices, those that enrolled first first.
func (h *history) enrolled(ctx context.Context) []asset.Asset {
	all, _, err := h.admin.Assets.Assets(ctx, asset.Query{Filter: asset.Filter{CompanyID: h.company.ID, Enrolled: true},
		Order: asset.ByCreatedAt, Page: operation.PageRequest{Size: 100}})
	script.Need(err)
	if len(all) == 0 {
		script.Fail("no device is enrolled")
	}
	return all
}

// settle is how long a device may take to answer before the next thing is done.
const settle = 15 * time.Millisecond

// send sends a command in the portal.
func (h *history) send(ctx context.Context, who *client.Person, a asset.Asset, kind command.Type, fields ...string) {
	address := frame.DevicePath(a.ID) + "/commands/" + rowOf(kind).Operation
	p := post(ctx, who, address, fields...)
	if p.Status == http.StatusUnprocessableEntity { // nothing was sent, as when the session ends at that moment
		p = post(ctx, who, address, fields...)
	}
	if p.Status != http.StatusOK {
		script.Fail("%s of %s is answered %d", kind, a.Identification, p.Status)
	}
	wait.For(ctx, settle)
}

func rowOf(kind command.Type) *command.Row {
	all := command.Catalog()
	return all[slices.IndexFunc(all, func(r *command.Row) bool { return r.Type == kind })]
}

// changePolicy has the assistant propose a change and apply it.
func (h *history) changePolicy(ctx context.Context, name, setting, value string) {
	p, _, err := h.running().Policy(ctx, name)
	script.Need(err)
	made := h.call(ctx, "/policies/"+p.ID+"/changes",
		map[string]any{"changes": []map[string]string{{"setting": setting, "value": value}}})
	ref, _ := made["proposalId"].(string)
	h.call(ctx, "/policy-proposals/"+path.Base(ref)+"/apply", map[string]any{"confirmation": p.Name})
}

// daysOfHistory is how long the demo's company has been in use when it is first shown.
const daysOfHistory = 30

// past is a clock behind another. It is moved on until it has caught up.
type past struct {
	now    func() time.Time
	behind atomic.Int64
}

// Now is the time by the clock.
func (p *past) Now() time.Time { return p.now().Add(-time.Duration(p.behind.Load())) }

// until moves the clock on to a time. It never goes back, and never ahead of the other.
func (p *past) until(t time.Time) {
	if d := t.Sub(p.Now()); d > 0 {
		p.behind.Store(max(0, p.behind.Load()-int64(d)))
	}
}

// isNew reports whether the demo's directory holds no company yet.
func (d *Demo) isNew() (bool, error) {
	_, err := os.Stat(filepath.Join(d.settings.Data, databaseFile))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, err
}

// livePast brings up the emulator and the service with a clock that is behind, has the
// company use them for a month, and ends them. What is done is done by the same
// operations, and is recorded in the same way, as whatever comes after it.
func (d *Demo) livePast(ctx context.Context) error {
	clock := &past{now: d.now}
	clock.behind.Store(int64(daysOfHistory * 24 * time.Hour))
	before := &Demo{settings: d.settings, now: clock.Now, log: slog.New(slog.DiscardHandler), out: d.out, past: clock}
	before.settings.History = false
	return before.run(ctx)
}
