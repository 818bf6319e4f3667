package rulebook

// Decision is what a person has said of one command to one device by one caller.
type Decision int

// A command for which there is no room among the five that wait has no decision.
const (
	None Decision = iota
	Waiting
	Authorized
	Declined
)

// Asks names what a person decides about.
func (c Call) Asks() string { return c.Tool + " " + c.Device }

// authorized reports whether a person has authorized a call, which uses that up. What
// has not been asked yet is asked, as long as fewer than five wait.
func (w *World) authorized(c Call) bool {
	switch w.Asked[c.Asks()] {
	case Authorized:
		w.Asked[c.Asks()] = None
		return true
	case None:
		waiting := 0
		for _, d := range w.Asked {
			if d == Waiting {
				waiting++
			}
		}
		if waiting < 5 {
			w.Asked[c.Asks()] = Waiting
		}
	}
	return false
}
