package settings

import (
	"fmt"
	"strconv"
	"time"

	"github.com/musterhq/muster/internal/company"
	"github.com/musterhq/muster/internal/surface/portal/frame"
)

// System is the state of the service, for administrators who have no shell. It says nothing
// of other companies.
type System struct {
	Version, Revision string
	Engine            string // of the database
	Schema, Size      int64  // the version of its tables; bytes
	Replicas          int    // that run now
	DiskFree          int64  // bytes; of an embedded database alone
	BackedUp          time.Time
	PlatformOn        bool // the service has access to the platform
	MailOn            bool
	// Lag is how old the last notification of the platform was when this replica applied
	// it, at NotifiedAt; zero: it applied none since it started.
	Lag            time.Duration
	NotifiedAt     time.Time
	Commands, Jobs int  // of the company that are under way
	Loops          bool // a background loop of this replica is down
	Checks         []Check
}

// Check is a finding of muster doctor.
type Check struct {
	Name           string
	Fine, Failed   bool
	Detail, Remedy string
}

func (c Check) tone() frame.Tone {
	switch {
	case c.Fine:
		return frame.OK
	case c.Failed:
		return frame.Bad
	}
	return frame.Warn
}

func (c Check) word() string {
	return map[frame.Tone]string{frame.OK: "OK", frame.Bad: "Failed", frame.Warn: "Warning"}[c.tone()]
}

// system serves the page of the service's state, whole or its live part.
func (s *Section) system(v *frame.Visit) error {
	state, err := s.System(v.Context(), v.Company.ID)
	if err != nil {
		return err
	}
	trouble := frame.TroubleOf(v, s.Troubles)
	return v.Show("System", frame.SettingsPath, systemPage(v, state, trouble))
}

// bytesText is a number of bytes for people, in binary units.
func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}

// queueText is a count that ends at 10,000.
func queueText(n int) string {
	if n >= 10_000 {
		return "10,000 or more"
	}
	return strconv.Itoa(n)
}

// connectionText is the company's connection to the platform as a tone and words.
func connectionText(v *frame.Visit, s System, t company.Trouble) (frame.Tone, string) {
	switch {
	case !s.PlatformOn:
		return frame.Idle, "The service has no access to the platform"
	case v.Company.Enterprise == "":
		return frame.Idle, "This company is not connected"
	case !t.LostSince.IsZero():
		return frame.Bad, "Google no longer has the enterprise of this company"
	case !t.Disconnecting.IsZero():
		return frame.Warn, "The enterprise is being given up"
	}
	return frame.OK, "Connected"
}
