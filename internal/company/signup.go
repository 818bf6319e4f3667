package company

import "time"

// SignupKept is how long a sign-up that was left half-way can be gone on with.
const SignupKept = 7 * 24 * time.Hour

// Signup is an unfinished sign-up at the device-management platform, so that
// an administrator who left can go on.
type Signup struct {
	State      string // the secret that the vendor's page brings back
	CompanyID  string
	Session    string // the id of the portal's session that began it; empty: the command line did
	Name       string // the vendor's name of it
	Address    string // the vendor's page
	Token      string // what the vendor brought back; empty: not finished yet
	Nonce      string // part of the enterprise's display name; empty: the vendor was not asked to make it, or it has its final name
	Enterprise string // empty until it is finished
	Begun      time.Time
}

// Returned reports whether the administrator came back from the vendor's page
// while the company could not be bound yet.
func (s Signup) Returned() bool { return s.Token != "" }
