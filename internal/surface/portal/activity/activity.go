// Package activity is the portal's activity log: who did what, with filters in
// the address, a histogram to choose a time, export, and the check of
// its chain.
package activity

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/access"
	"github.com/musterhq/muster/internal/account"
	"github.com/musterhq/muster/internal/activity"
	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// Section serves the activity log.
type Section struct {
	Store activity.Store
	Chain *activity.Sealer
}

// verifyChain are the rights to check the chain, which has the entries of the whole company.
const verifyChain = account.ViewActivity | account.AllPolicies

// Routes are the section's addresses.
func (s *Section) Routes() []frame.Route {
	return []frame.Route{
		{Pattern: "GET " + frame.ActivityPath, Needs: account.ViewActivity, Serve: s.show},
		{Pattern: "GET " + frame.ActivityPath + "/export", Needs: account.ViewActivity, Serve: s.export},
		{Pattern: "POST " + frame.ActivityPath + "/verify", Needs: verifyChain, Serve: s.verify},
	}
}

const (
	pageSize = 50
	bars     = 60
	day      = 24 * time.Hour
)

// spans are the stretches of time on offer, the first by default.
func spans() []span {
	return []span{{"30d", "Last 30 days", 30 * day}, {"7d", "Last 7 days", 7 * day}, {"24h", "Last 24 hours", day},
		{"90d", "Last 90 days", 90 * day}, {"400d", "Last 400 days", 400 * day}}
}

type span struct {
	Value, Label string
	Lasts        time.Duration
}

type option struct{ Value, Label string }

// view is what the page shows.
type view struct {
	Filter       activity.Filter
	Query        url.Values // the filters, without the cursor
	Entries      []activity.Entry
	Next         string // where older entries are; empty: there are none
	Beginning    bool   // the newest are shown
	Buckets      []bar
	Most         int64
	Total        int64
	DensityFails bool
	Broken       string // what is wrong with the chain; empty: nothing is known
}

// bar is one bar of the histogram.
type bar struct {
	From, To time.Time
	Count    int64
	Link     string
}

func (s *Section) show(v *frame.Visit) error {
	f, q, err := read(v)
	if err != nil {
		return err
	}
	f.Once = true // the export has every entry
	after, err := cursor(v.Query().Get("after"))
	if err != nil {
		return err
	}
	entries, err := s.Store.Activity(v.Context(), f, after, pageSize)
	if err != nil {
		return err
	}
	page := view{Filter: f, Query: q, Entries: entries, Beginning: v.Query().Get("after") == "", Broken: s.Chain.Broken(v.Company.ID)}
	if len(entries) == pageSize {
		last := entries[len(entries)-1]
		page.Next = frame.ActivityPath + "?" + with(q, "after", fmt.Sprintf("%d.%s", last.At.UnixMilli(), last.ID)).Encode()
	}
	width := (f.To.Sub(f.From)/bars + time.Second - 1).Truncate(time.Second) // rounded up: all of the time has bars
	buckets, err := s.Store.ActivityDensity(v.Context(), f, width)
	page.DensityFails = err != nil
	page.histogram(buckets, width)
	return v.Show("Activity", frame.ActivityPath, list(v, page))
}

// histogram lays the buckets out, empty ones too.
func (p *view) histogram(buckets []activity.Bucket, width time.Duration) {
	counts := map[int64]int64{}
	for _, b := range buckets {
		counts[b.From.UnixMilli()] = b.Count
		p.Total += b.Count
		p.Most = max(p.Most, b.Count)
	}
	for at := p.Filter.From; at.Before(p.Filter.To) && len(p.Buckets) <= bars; at = at.Add(width) {
		to := at.Add(width)
		q := with(p.Query, "from", strconv.FormatInt(at.UnixMilli(), 10))
		q.Set("to", strconv.FormatInt(to.UnixMilli(), 10))
		q.Del("range")
		p.Buckets = append(p.Buckets, bar{From: at, To: to, Count: counts[at.UnixMilli()], Link: frame.ActivityPath + "?" + q.Encode()})
	}
}

// x is where a bar begins in the histogram, which is 600 wide.
func (p view) x(b bar) string {
	return fmt.Sprint(600 * b.From.Sub(p.Filter.From).Seconds() / p.Filter.To.Sub(p.Filter.From).Seconds())
}

// maxFilter is how many characters a filter has at most, as the form has it.
const maxFilter = 100

// read reads the filters of the address. It fails with fault.InvalidArguments for what is no
// filter: an auditor who leaves with the whole log takes it for a part.
func read(v *frame.Visit) (activity.Filter, url.Values, error) {
	in, q := v.Query(), url.Values{}
	choices := map[string][]option{"area": areaOptions(), "actor": options(actorKinds(), kindWord),
		"outcome": options(activity.Outcomes(), outcomeWord)}
	for name, values := range in {
		switch {
		case !slices.Contains(parameters(), name):
			return activity.Filter{}, nil, frame.WrongQuery("“" + frame.Plain(name) + "” is not a filter of the activity log")
		case len(values) > 1:
			return activity.Filter{}, nil, frame.WrongQuery(name + " stands twice")
		case utf8.RuneCountInString(values[0]) > maxFilter:
			return activity.Filter{}, nil, frame.WrongQuery(fmt.Sprintf("%s must have at most %d characters", name, maxFilter))
		case values[0] != "" && choices[name] != nil &&
			!slices.ContainsFunc(choices[name], func(o option) bool { return o.Value == values[0] }):
			return activity.Filter{}, nil, frame.WrongQuery(name + " is none of the choices of the activity log")
		}
	}
	keep := func(name string) string {
		value := in.Get(name)
		if value != "" {
			q.Set(name, value)
		}
		return value
	}
	f := activity.Filter{CompanyID: v.Company.ID, Actor: access.Kind(keep("actor")), ActorID: keep("by"), Text: keep("q"),
		AssetID: keep("device"), TargetID: keep("target"), Outcome: activity.Outcome(keep("outcome")),
		Limit: activity.Limit{UserID: v.User.ID, Policies: v.Principal.Policies}}
	if f.Area = keep("area"); f.Area == destructive {
		f.Area, f.Actions = "", command.DestructiveActions()
	}
	var err error
	if span := keep("range"); span != "" { // chosen instead of the time of a bar
		f.From, f.To, err = period(v, "", "", span)
	} else {
		f.From, f.To, err = period(v, keep("from"), keep("to"), "")
	}
	return f, q, err
}

// parameters are those of the log's address: filters, the time, the page and the export's format.
func parameters() []string {
	return []string{"actor", "by", "q", "device", "target", "outcome", "area", "from", "to", "range", "after", "format"}
}

// period is the time that the address asks for, in whole seconds.
func period(v *frame.Visit, from, to, wanted string) (begin, end time.Time, err error) {
	first, errFrom := strconv.ParseInt(from, 10, 64)
	until, errTo := strconv.ParseInt(to, 10, 64)
	chosen := slices.IndexFunc(spans(), func(s span) bool { return s.Value == cmp.Or(wanted, spans()[0].Value) })
	switch {
	case errFrom == nil && errTo == nil && first > 0 && until-first >= 1000 && until-first <= (4000*day).Milliseconds():
		return time.UnixMilli(first).UTC(), time.UnixMilli(until).UTC(), nil
	case from != "" || to != "" || chosen < 0:
		return begin, end, frame.WrongQuery("the time of the activity log is malformed: choose it on the page")
	}
	end = v.Now.UTC().Truncate(time.Minute).Add(time.Minute)
	return end.Add(-spans()[chosen].Lasts), end, nil
}

// cursor is where older entries begin; empty: at the newest.
func cursor(text string) (activity.Cursor, error) {
	if text == "" {
		return activity.Cursor{}, nil
	}
	at, id, ok := strings.Cut(text, ".")
	ms, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil || len(id) > 40 {
		return activity.Cursor{}, frame.WrongQuery("the page of the activity log is malformed: go on from its beginning")
	}
	return activity.Cursor{At: time.UnixMilli(ms), ID: id}, nil
}

func with(q url.Values, name, value string) url.Values {
	out := maps.Clone(q)
	out.Set(name, value)
	if value == "" {
		out.Del(name)
	}
	return out
}

// export streams what the filters show.
func (s *Section) export(v *frame.Visit) error {
	f, _, err := read(v)
	if err != nil {
		return err
	}
	format := activity.Format(v.Query().Get("format"))
	media := "text/csv; charset=utf-8"
	switch format {
	case activity.CSV:
	case activity.NDJSON:
		media = "application/x-ndjson"
	default:
		return frame.WrongQuery("the format is csv or ndjson")
	}
	v.Download(media, fmt.Sprintf("activity-%s-%s.%s", v.Company.Slug, v.Now.UTC().Format("20060102"), format))
	to := renewing{v.Writer(), http.NewResponseController(v.Writer()), v.Clock}
	if err := activity.Export(v.Context(), standing{s.Store, v}, f, format, to); err != nil {
		panic(http.ErrAbortHandler) // the download must not look complete
	}
	return nil
}

// standing reads entries as long as the person may: a slow download takes hours.
type standing struct {
	activity.Store
	visit *frame.Visit
}

// Activity implements activity.Store.
func (s standing) Activity(ctx context.Context, f activity.Filter, after activity.Cursor, limit int) ([]activity.Entry, error) {
	entries, err := s.Store.Activity(ctx, f, after, limit)
	if err == nil {
		err = s.visit.Stands()
	}
	return entries, err
}

// exportPause is for how long a browser may take nothing of an export.
const exportPause = 30 * time.Second

// renewing writes an answer that may take as long as the browser goes on to take it.
type renewing struct {
	http.ResponseWriter
	control *http.ResponseController
	now     func() time.Time
}

// Write renews the deadline, and writes a part.
func (w renewing) Write(part []byte) (int, error) {
	_ = w.control.SetWriteDeadline(w.now().Add(exportPause))
	return w.ResponseWriter.Write(part)
}

// verify checks the whole chain.
func (s *Section) verify(v *frame.Visit) error {
	verdict, err := s.Chain.Verify(v.Context(), v.Company.ID)
	if err != nil {
		return err
	}
	if !verdict.Sound() {
		return v.Redirect(frame.ActivityPath, frame.Flash{Tone: frame.Bad,
			Text: fmt.Sprintf("The chain is broken: at entry %d, %s.", verdict.Broken, verdict.Why)})
	}
	text := fmt.Sprintf("%s from entry %d to a head signed by this service: %d, %s. Compare it with one that you noted earlier.",
		frame.Count(verdict.Checked, "entry forms an unbroken chain", "entries form an unbroken chain"), verdict.Head.First,
		verdict.Head.Last, short(verdict.Head.Hash))
	if n := verdict.Unproved(); n > 0 {
		return v.Redirect(frame.ActivityPath,
			frame.Flash{Tone: frame.Warn, Text: fmt.Sprintf("%s Entries up to %d need no proof: the chain shows that they did not change "+
				"since, not who wrote them.", text, n)})
	}
	return v.Redirect(frame.ActivityPath, frame.Done(text))
}

func short(hash string) string { return hash[:min(len(hash), 16)] }
