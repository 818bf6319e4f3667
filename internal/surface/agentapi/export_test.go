package agentapi

// Opening counts the devices with a request for a stream that is not answered.
func (h *Hub) Opening() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.opening)
}
