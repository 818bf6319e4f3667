package ops

import (
	"fmt"
	"log/slog"
	"runtime"

	"github.com/musterhq/muster/internal/webhook"
)

// How the files that this process may open are shared out. A connection is an
// open file: without shares, wake streams of agents take them all, and neither
// a request nor the database gets one.
const (
	ownFiles        = 48 // the program's own: database, log, listeners, outgoing calls
	filesPerCPU     = 4  // SQLite has up to two readers per CPU, with two files each
	requestShare    = 512
	maxWakeStreams  = 100_000
	minWebhooks     = 8
	filesPerWebhook = 256     // of the limit for each webhook that is served at a time
	unknownFiles    = 1 << 20 // where the system does not report its limit
)

// Shares are how many connections of each kind a replica holds.
type Shares struct {
	OpenFiles int // the limit of the process
	Streams   int // wake streams of agents
	Requests  int // connections of everything else
}

// ShareFiles divides what is left of the limit after the program's own files:
// the requests get requestShare, or half where there is less.
func ShareFiles(limit, cpus int) Shares {
	free := max(2, limit-ownFiles-filesPerCPU*cpus)
	streams := min(maxWakeStreams, free-min(requestShare, free/2))
	return Shares{OpenFiles: limit, Streams: streams, Requests: free - streams}
}

// CurrentShares are those of this process.
func CurrentShares() Shares { return ShareFiles(OpenFileLimit(), runtime.GOMAXPROCS(0)) }

// Webhooks is how many webhooks are served at a time: fewer where few files may be opened.
func (s Shares) Webhooks() int {
	return min(webhook.MaxSlots, max(minWebhooks, s.OpenFiles/filesPerWebhook))
}

// LogValue implements slog.LogValuer.
func (s Shares) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("openFiles", s.OpenFiles), slog.Int("wakeStreams", s.Streams), slog.Int("requests", s.Requests))
}

// fewStreams is below what a fleet of some size needs.
const fewStreams = 4000

// Few reports whether a fleet of some size has more agents than wake streams.
func (s Shares) Few() bool { return s.Streams < fewStreams }

// OpenFilesRemedy says how a process may open more files.
const OpenFilesRemedy = "raise the limit: LimitNOFILE=1048576 in the systemd unit, or `ulimit -n` in the shell that starts the service"

// openFiles says what the limit of this process would mean for the service: the
// service's own limit may be another.
func (d *doctor) openFiles() {
	s := CurrentShares()
	detail := fmt.Sprintf("started from this shell, a replica may open %d files: %d wake streams of agents, %d connections of requests",
		s.OpenFiles, s.Streams, s.Requests)
	if s.Few() {
		d.note("open files", Warning, detail, OpenFilesRemedy+"; agents without a stream poll every 15 minutes")
		return
	}
	d.note("open files", Fine, detail, "")
}
