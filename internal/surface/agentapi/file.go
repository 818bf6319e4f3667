package agentapi

import (
	"net/http"
	"regexp"
	"strconv"
	"sync"

	"github.com/musterhq/muster/internal/agent/protocol"
	"github.com/musterhq/muster/internal/rollout"
)

// The downloads that a replica serves at a time, and of one device: a device that reads
// slowly must not take the place of others.
const (
	maxDownloads   = 50
	deviceDownload = 2
	downloadRetry  = 30 // seconds
)

// downloads counts those that run.
type downloads struct {
	mu     sync.Mutex
	all    int
	device map[string]int
}

// begin takes a place, unless all are taken.
func (d *downloads) begin(device string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all >= maxDownloads || d.device[device] >= deviceDownload {
		return false
	}
	if d.device == nil {
		d.device = map[string]int{}
	}
	d.all++
	d.device[device]++
	return true
}

func (d *downloads) end(device string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all--
	if d.device[device]--; d.device[device] == 0 {
		delete(d.device, device)
	}
}

// rangeForm is the one form of a range that is answered: from and to, both included.
var rangeForm = regexp.MustCompile(`^bytes=([0-9]{1,12})-([0-9]{1,12})$`)

// file answers a range of a file that the device was offered.
func (d *API) file(w http.ResponseWriter, r *http.Request, v visit) (any, error) {
	named := rangeForm.FindStringSubmatch(r.Header.Get("Range"))
	if named == nil {
		return nil, &protocol.Refusal{Code: protocol.Malformed, Message: "name one range, from and to"}
	}
	if !d.downloads.begin(v.device.ID) {
		return nil, &protocol.Refusal{Code: protocol.Busy, Message: "too many downloads", RetryAfter: downloadRetry}
	}
	defer d.downloads.end(v.device.ID)
	sha256 := r.PathValue("sha256")
	size, err := d.Service.FileSize(r.Context(), v.device, sha256)
	if err != nil {
		return nil, err
	}
	from, _ := strconv.ParseInt(named[1], 10, 64) // the form has made sure
	to, _ := strconv.ParseInt(named[2], 10, 64)
	to = min(to, size-1, from+protocol.MaxRange-1)
	if from > to {
		w.Header().Set("Content-Range", "bytes */"+strconv.FormatInt(size, 10))
		w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
		return nil, nil
	}
	part, err := d.Service.FilePart(r.Context(), v.device, sha256, from/rollout.PartSize)
	if err != nil {
		return nil, err
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.FormatInt(to-from+1, 10))
	h.Set("Content-Range", "bytes "+strconv.FormatInt(from, 10)+"-"+strconv.FormatInt(to, 10)+"/"+strconv.FormatInt(size, 10))
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusPartialContent)
	for at := from; ; {
		begin := at % rollout.PartSize
		end := min(int64(len(part)), begin+to-at+1)
		if begin >= end {
			return nil, nil // shorter than it should be: the device sees that the answer is cut
		}
		if _, err := w.Write(part[begin:end]); err != nil {
			return nil, nil
		}
		if at += end - begin; at > to {
			return nil, nil
		}
		if part, err = d.Service.FilePart(r.Context(), v.device, sha256, at/rollout.PartSize); err != nil {
			return nil, nil
		}
	}
}
