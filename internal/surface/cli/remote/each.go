package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/client"
	"github.com/musterhq/muster/internal/phrase"
	"github.com/musterhq/muster/internal/resource"
	"github.com/musterhq/muster/internal/surface/cli"
)

// many are the flags of a command for several devices.
type many struct {
	Filter *string `name:"filter" placeholder:"QUERY" help:"Not one device but all that match: 'tag=store-12&policyBehind=true'. Times may be durations: 'seenBefore=48h'. 'all=true' means all."`
	New    bool    `name:"new" help:"With --filter: start again, although the same command was not finished."`
}

const (
	pageSize = 100
	// longestWait is how long one wait for the service may be. Beyond it the command
	// ends, and goes on when it is given again.
	longestWait = 15 * time.Minute
	// attempts is how often a request is sent that the service cannot take.
	attempts = 8
	// passes is how often the devices of a filter are listed, at most.
	passes = 10
)

// fanOut is one command for several devices.
type fanOut struct {
	env      *Env
	service  *client.Client
	call     *call
	given    map[string]any
	filters  url.Values
	journal  *journal
	free     time.Time // when the budget has calls again
	unsure   bool      // an attempt of the present request may have been received
	progress progress
}

// each carries the command out for all devices of the filter.
func (c *call) each(env *Env) error {
	matching, err := filters(*c.many.Filter, env)
	if err != nil {
		return err
	}
	given, err := c.arguments(env)
	if err != nil {
		return err
	}
	name := c.operation.PathArgs()[0]
	if given[name] != nil {
		return usage("name a device or give --filter, not both")
	}
	given[name] = "any"
	if _, err := c.build(given); err != nil {
		return err
	}
	service, err := c.open(env)
	if err != nil {
		return err
	}
	f := &fanOut{env: env, service: service, call: c, given: given, filters: matching, progress: progress{env: env}}
	defer f.progress.clear()
	if err := f.prepare(); err != nil {
		return err
	}
	if err := f.run(); err != nil {
		return f.stopped(err)
	}
	return f.report()
}

// prepare takes up the run of the same command, or begins a new one.
func (f *fanOut) prepare() error {
	device, err := f.someDevice()
	if err != nil || device == "" {
		f.journal = &journal{}
		return err
	}
	path, err := f.path(device)
	if err != nil {
		return err
	}
	if !f.call.many.New {
		if f.journal, err = resume(path, f.env.Now()); err != nil {
			return err
		}
	}
	if f.journal != nil {
		fmt.Fprintf(f.env.Err, "muster: going on with the run of %s: %d of %d were done; --new starts again\n",
			f.journal.Begun.Format(time.DateTime+"Z07:00"), len(f.journal.Devices)-f.journal.count(""), len(f.journal.Devices))
		return nil
	}
	devices, err := f.expand()
	if err != nil || len(devices) == 0 {
		f.journal = &journal{}
		return err
	}
	f.journal, err = begin(path, devices, f.env.Now())
	return err
}

// someDevice is a device of the company, which need not match: the run of the same command
// is taken up also when nothing matches any more. It is empty if the company has none.
func (f *fanOut) someDevice() (string, error) {
	for _, filters := range []url.Values{nil, {"archived": {"true"}}} {
		page, err := f.page(filters, 0, 1)
		if err != nil {
			return "", err
		}
		if len(page.Content) > 0 {
			return page.Content[0].PathName, nil
		}
	}
	return "", nil
}

// path is the file of the command's run. The same command has the same: service, company,
// operation, arguments, reason and filter.
func (f *fanOut) path(device string) (string, error) {
	dir, err := folder(f.env.ConfigDir)
	if err != nil {
		return "", err
	}
	company, _ := resource.Owner(device)
	intent, err := json.Marshal([]any{f.service.Address, company, f.call.operation.Name, f.given, f.call.why, *f.call.many.Filter})
	sum := sha256.Sum256(intent)
	return filepath.Join(dir, "runs", hex.EncodeToString(sum[:16])), err
}

// listed is a page of devices.
type listed struct {
	Content []struct {
		PathName string `json:"pathName"`
	} `json:"content"`
	Last bool `json:"last"`
}

func (f *fanOut) page(filters url.Values, number, size int) (page listed, err error) {
	query := url.Values{"view": {"BASIC"}, "sort": {"createdAt,asc"}, "page": {strconv.Itoa(number)}, "size": {strconv.Itoa(size)}}
	maps.Copy(query, filters)
	answer, err := f.send(client.Request{Method: http.MethodGet, Path: client.Base + "/assets", Query: query})
	if err != nil {
		return page, err
	}
	return page, json.Unmarshal(answer.Body, &page)
}

// expand lists the devices that match, when the run begins. A device that ceases to match while the list is read moves those
// after it to an earlier page, which was read: the list is read again until there is no new device.
func (f *fanOut) expand() (devices []string, err error) {
	seen := map[string]bool{}
	for range passes {
		known, number := len(devices), 0
		for last := false; !last; number++ {
			page, err := f.page(f.filters, number, pageSize)
			if err != nil {
				return nil, err
			}
			for _, one := range page.Content {
				if !seen[one.PathName] {
					seen[one.PathName], devices = true, append(devices, one.PathName)
				}
			}
			last = page.Last || len(page.Content) == 0
			f.progress.show("%d devices match so far", len(devices))
		}
		if number == 1 || len(devices) == known { // one page is of one moment
			break
		}
	}
	return devices, nil
}

// run sends what was not sent.
func (f *fanOut) run() error {
	if f.journal.file == nil { // nothing matches
		return nil
	}
	for i := range f.journal.Devices {
		if f.journal.States[i].Status != "" {
			continue
		}
		if err := f.device(i); err != nil {
			return err
		}
	}
	return f.journal.end()
}

// device sends the request of one device and notes how it ended.
func (f *fanOut) device(i int) error {
	by, now := keyPrefix(f.service.Key), f.env.Now()
	if s := f.journal.States[i]; !s.SentAt.IsZero() && (s.By != by || now.Sub(s.SentAt) > keysKept) {
		// The service knows a key's requests for a day, and another key's not at all.
		return f.journal.settle(i, unconfirmed, "an earlier attempt may have been received")
	}
	fresh := f.journal.States[i].SentAt.IsZero()
	if wait := f.free.Sub(now); wait > 0 {
		if err := f.pause(wait, "for the budget"); err != nil {
			return err
		}
	}
	f.given[f.call.operation.PathArgs()[0]] = f.journal.Devices[i]
	request, err := f.call.build(f.given)
	if err != nil {
		return err
	}
	request.IdempotencyKey = fmt.Sprintf("%s-%d", f.journal.ID, i+1)
	if err := f.journal.sending(i, by, f.env.Now()); err != nil {
		return err
	}
	f.progress.show("%s", f.counts())
	f.unsure = false
	answer, err := f.send(request)
	problem, refused := errors.AsType[*client.Problem](err)
	switch {
	case refused && problem.Unknown():
		return f.journal.settle(i, unconfirmed, plain(problem.Error()))
	case refused && ofDevice(problem):
		return f.journal.settle(i, failed, plain(problem.Error()))
	case err != nil && fresh && !f.unsure:
		return errors.Join(err, f.journal.back(i))
	case err != nil:
		return err
	case answer.Unconfirmed():
		return f.journal.settle(i, unconfirmed, "it may have been received")
	}
	return f.journal.settle(i, accepted, "")
}

// keyPrefix is the part of an API key that is no secret.
func keyPrefix(key string) string {
	if parts := strings.Split(key, "_"); len(parts) == 3 {
		return parts[1]
	}
	return ""
}

// ofDevice reports whether a refusal is about one device, and the others may be tried.
func ofDevice(p *client.Problem) bool {
	switch p.Status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return false
	case http.StatusForbidden:
		return p.ApprovalURL != ""
	case http.StatusConflict:
		return p.RetryAfter == 0
	}
	return p.Status < http.StatusInternalServerError || !p.Retryable && p.Status <= http.StatusBadGateway
}

// send sends a request until the service takes it or refuses it for good. It is a read, or
// has an Idempotency-Key.
func (f *fanOut) send(r client.Request) (*client.Answer, error) {
	for attempt := 1; ; attempt++ {
		answer, err := f.service.Do(f.env.Context, r)
		if err == nil {
			if b := answer.Budget(); b != nil && b.Remaining == 0 {
				f.free = f.env.Now().Add(b.Reset)
			}
			return answer, nil
		}
		_, lost := errors.AsType[*client.Lost](err)
		p, answered := errors.AsType[*client.Problem](err)
		f.unsure = f.unsure || lost || answered && (p.Status >= http.StatusInternalServerError || p.Status == http.StatusConflict)
		wait, why, again := again(err, attempt)
		if f.env.Context.Err() != nil || !again {
			return nil, err
		}
		if err := f.pause(wait, why); err != nil {
			return nil, err
		}
	}
}

// again reports whether a request is sent once more after an error, and when.
func again(err error, attempt int) (wait time.Duration, why string, ok bool) {
	pause := min(time.Second<<(attempt-1), 30*time.Second)
	p, answered := errors.AsType[*client.Problem](err)
	switch {
	case answered && p.Status == http.StatusTooManyRequests: // waiting is what it asks for
		return max(p.RetryAfter, time.Second), "for the budget", p.RetryAfter <= longestWait
	case answered && (p.Status >= http.StatusInternalServerError && p.Retryable || p.Status == http.StatusServiceUnavailable ||
		p.Status == http.StatusGatewayTimeout ||
		p.Status == http.StatusConflict && p.RetryAfter > 0):
		return max(p.RetryAfter, pause), "for the service", attempt < attempts
	case answered:
		return 0, "", false
	}
	return pause, "for an answer", attempt < attempts
}

func (f *fanOut) pause(d time.Duration, why string) error {
	f.progress.show("%s; waiting %s %s", f.counts(), d.Round(time.Second), why)
	if !f.env.wait(f.env.Context, d) {
		return context.Canceled
	}
	return nil
}

// counts are where the run is, in words.
func (f *fanOut) counts() string {
	if f.journal == nil {
		return "looking for devices"
	}
	j := f.journal
	return fmt.Sprintf("%d of %d: %d accepted, %d failed, %d unconfirmed", len(j.Devices)-j.count(""), len(j.Devices), j.count(accepted),
		j.count(failed), j.count(unconfirmed))
}

// stopped says that a run ended before it was done, and how it goes on.
func (f *fanOut) stopped(err error) error {
	why := plain(err.Error())
	if f.env.Context.Err() != nil {
		why = "interrupted"
	}
	code := cli.ExitFailed
	if e, ok := errors.AsType[*cli.ExitError](failure(err)); ok {
		code = e.Code
	}
	return &cli.ExitError{Code: code, Text: fmt.Sprintf("%s (%s). The same command goes on within 24 hours, and sends nothing twice", why,
		f.counts())}
}

// result is what a run answers.
type result struct {
	Total       int            `json:"total"`
	Accepted    int            `json:"accepted"`
	Failed      int            `json:"failed"`
	Unconfirmed int            `json:"unconfirmed"`
	Results     []deviceResult `json:"results"`
}

type deviceResult struct {
	AssetID string `json:"assetId"`
	Status  string `json:"status"`
	Outcome string `json:"outcome,omitempty"`
}

// report prints how each device ended, and fails unless all accepted.
func (f *fanOut) report() error {
	f.progress.clear()
	j := f.journal
	r := result{Total: len(j.Devices), Accepted: j.count(accepted), Failed: j.count(failed), Unconfirmed: j.count(unconfirmed),
		Results: []deviceResult{}}
	for i, device := range j.Devices {
		r.Results = append(r.Results, deviceResult{device, j.States[i].Status, j.States[i].Outcome})
	}
	err := cli.Print(f.env.Out, f.call.Output, r, func(w io.Writer) {
		for _, one := range r.Results {
			if one.Status != accepted {
				fmt.Fprintf(w, "%s\t%s\t%s\n", plain(one.AssetID), one.Status, one.Outcome)
			}
		}
		fmt.Fprintf(w, "%s: %d accepted, %d failed, %d unconfirmed.\n", phrase.Count(r.Total, "device", "devices"), r.Accepted,
			r.Failed, r.Unconfirmed)
	})
	switch {
	case err != nil:
		return err
	case r.Unconfirmed > 0:
		return &cli.ExitError{Code: cli.ExitUnconfirmed,
			Text: fmt.Sprintf("%d UNCONFIRMED: they may have been sent; look before you send them again", r.Unconfirmed)}
	case r.Failed > 0:
		return &cli.ExitError{Code: cli.ExitFailed, Text: fmt.Sprintf("%d of %d failed", r.Failed, r.Total)}
	}
	return nil
}

// progress is one line at a terminal, which is written again.
type progress struct {
	env   *Env
	shown bool
}

func (p *progress) show(format string, args ...any) {
	if p.env.Terminal {
		fmt.Fprintf(p.env.Err, "\r\x1b[K"+format, args...)
		p.shown = true
	}
}

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.env.Err, "\r\x1b[K")
		p.shown = false
	}
}
