package rulebook

// Finish says what a call is answered whose caller was let in in an earlier world, and
// whose arguments arrived in this one. After a second it is a new call. Before, the world
// in which the caller was let in may refuse it, and its budget is spent as that world says;
// what it would record is decided as for a new call.
func (w *World) Finish(c Call, letIn World, late bool) Answer {
	if late {
		return w.Predict(c)
	}
	letIn.Spent = w.Spent
	refused := letIn.admit(c)
	if w.Spent = letIn.Spent; refused.Status != 0 {
		return refused
	}
	if refused = w.entry(); refused.Status == 0 {
		refused = w.permission(c)
	}
	switch {
	case refused.Status != 0:
		return refused
	case w.lacksReason(c):
		return Answer{Status: 400, Code: "invalid_arguments"}
	}
	return w.carryOut(c)
}
