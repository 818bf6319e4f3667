package emulator

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/musterhq/muster/internal/wait"
)

// schedule is the devices' future: what happens when. One heap serves all
// devices, so that thousands cost no goroutine each.
type schedule struct {
	heap eventHeap
	next int64
	wake chan struct{} // holds a token when the loop should look again
}

type event struct {
	at    time.Time
	order int64 // ties go in the order in which they were scheduled
	do    func()
}

// idle is how long the loop sleeps when nothing is to come.
const idle = time.Hour

// after schedules do, which runs with e.mu held. Callers hold e.mu.
func (e *Emulator) after(delay time.Duration, do func()) { e.at(e.now().Add(delay), do) }

func (e *Emulator) at(when time.Time, do func()) {
	s := &e.events
	s.next++
	heap.Push(&s.heap, &event{at: when, order: s.next, do: do})
	if s.heap[0].order == s.next || !s.heap[0].at.After(e.now()) { // due already if the clock was set
		s.nudge()
	}
}

func (s *schedule) nudge() { wait.Wake(s.wake) }

// eventsPerLock bounds how long the state is locked while many devices move.
const eventsPerLock = 64

func (e *Emulator) runSome() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	for range eventsPerLock {
		if len(e.events.heap) == 0 {
			return idle
		}
		if pause := e.events.heap[0].at.Sub(e.now()); pause > 0 {
			return pause
		}
		heap.Pop(&e.events.heap).(*event).do()
	}
	return 0
}

type eventHeap []*event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return cmp.Or(h[i].at.Compare(h[j].at), cmp.Compare(h[i].order, h[j].order)) < 0
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(*event)) }
func (h *eventHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
