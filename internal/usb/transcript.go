package usb

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/musterhq/muster/internal/usb/adb"
	"github.com/musterhq/muster/internal/validate"
)

// Transcript records what was run on devices and what they answered, for reports
// about hardware. It leaves out what identifies a device or a person. Bundles go to
// devices as files, and so never come here. Several devices may write at once.
type Transcript struct {
	To io.Writer
	// Err is the first error of To.
	Err error

	mu sync.Mutex
}

// accounts are addresses of people, and deviceIDs what the agent says of its
// enrollment.
var (
	accounts  = regexp.MustCompile(`[^\s=<>"'/]+@[^\s=<>"'/]+\.[^\s=<>"',/]+`)
	deviceIDs = regexp.MustCompile(`\bdevice=[0-9A-Za-z_-]+|Device: +[0-9A-Za-z_-]+`)
	secrets   = regexp.MustCompile(`met_[0-9A-Za-z_-]+`)
)

// record writes one command down.
func (w *work) record(words []string, said adb.Output, err error) {
	if w.Transcript == nil {
		return
	}
	t := w.Transcript
	t.mu.Lock()
	defer t.mu.Unlock()
	hide := func(text string) string {
		if serial := w.result.Serial; serial != "" {
			text = strings.ReplaceAll(text, serial, "[serial]")
		}
		text = accounts.ReplaceAllString(text, "[account]")
		text = deviceIDs.ReplaceAllString(text, "[device]")
		return secrets.ReplaceAllString(text, "[token]")
	}
	var all strings.Builder
	fmt.Fprintf(&all, "%s %s, Android %s (%d)$ %s\n", w.result.Manufacturer, w.result.Model, w.result.AndroidVersion, w.result.SDK, hide(strings.Join(words, " ")))
	for _, text := range []string{said.Out, said.Err} {
		for line := range strings.Lines(text) {
			fmt.Fprintf(&all, "  %s\n", validate.Clean(hide(line), 1000))
		}
	}
	if err != nil {
		fmt.Fprintf(&all, "  error: %s\n", validate.Clean(hide(err.Error()), 1000))
	}
	fmt.Fprintf(&all, "  exit code %d\n", said.Code)
	if _, err := io.WriteString(t.To, all.String()); err != nil && t.Err == nil {
		t.Err = err
	}
}
