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

// authorized reports whether a person has authorized a call, which uses that up. What
// has not been asked yet is asked, as long as fewer than five wait.
func (w *World) authorized(c Call) bool {
	asks := w.Asks(c)
	switch w.Asked[asks] {
	case Authorized:
		w.Asked[asks] = None
		return true
	case None:
		waiting := 0
		for _, d := range w.Asked {
			if d == Waiting {
				waiting++
			}
		}
		if waiting < 5 {
			w.Asked[asks] = Waiting
		}
	default: // asked already
	}
	return false
}
