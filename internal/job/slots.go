package job

import "sync"

const (
	// atOnce bounds the devices that one replica sends to at a time.
	atOnce = 64
	// ofCompany bounds those of one company: one whose channel hangs leaves the others to the rest.
	ofCompany = 8
)

// slots counts the devices that are sent to. Its zero value counts none. Concurrent use is safe.
type slots struct {
	mu    sync.Mutex
	all   int
	taken map[string]int // by company, without those that have none
}

// room is how many more devices of a company may be sent to.
func (s *slots) room(companyID string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, min(atOnce-s.all, ofCompany-s.taken[companyID]))
}

// take counts a device of a company, until its slot is left.
func (s *slots) take(companyID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == nil {
		s.taken = map[string]int{}
	}
	s.all++
	s.taken[companyID]++
}

// leave ends what take began.
func (s *slots) leave(companyID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.taken[companyID]--; s.taken[companyID] == 0 {
		delete(s.taken, companyID)
	}
}
