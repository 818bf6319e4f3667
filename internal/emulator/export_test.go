package emulator

// LogCall adds a call to the log without making it, so that a test can fill it.
func (e *Emulator) LogCall(c Call) { e.calls.add(c) }

// MethodIDs gives the discovery ids of all methods that the emulator has, by the
// name of their interface.
func (e *Emulator) MethodIDs() map[string][]string {
	ids := map[string][]string{}
	for _, r := range e.routes {
		for id := range r.methods {
			ids[r.document.Name] = append(ids[r.document.Name], id)
		}
	}
	return ids
}
