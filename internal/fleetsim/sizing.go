package fleetsim

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/wait"
)

// Sizing is what a run says about the machine that a service needs.
type Sizing struct {
	// Seconds is the real time from the first command until the devices had
	// acknowledged them.
	Seconds           float64 `json:"seconds"`
	Requests          int64   `json:"requests"` // of agents and of callers in that time
	RequestsPerSecond float64 `json:"requestsPerSecond"`
	CommandsPerSecond float64 `json:"commandsPerSecond"`
	// Service is what the service used; nil: Missing says why it is not known.
	Service *ServiceCost `json:"service"`
	Missing string       `json:"missing,omitempty"`
	Advice  string       `json:"advice"`
}

// ServiceCost is what the service's processes used. Memory is resident memory in
// bytes; a difference in it that is not above zero is 0, because the last garbage
// collection decides about small ones.
type ServiceCost struct {
	Memory     int64 `json:"memoryBytes"` // before the first device
	MemoryMost int64 `json:"memoryMostBytes"`

	MemoryPer1000Devices       int64   `json:"memoryPer1000DevicesBytes"`
	MemoryPer1000Commands      int64   `json:"memoryPer1000CommandsBytes"`
	CPUSecondsPer1000Enrolled  float64 `json:"cpuSecondsPer1000Enrolled"`
	CPUSecondsPer1000Commands  float64 `json:"cpuSecondsPer1000Commands"`
	CommandsPerSecondAndOneCPU float64 `json:"commandsPerSecondAndOneCPU"` // at 80 % of it; 0: not known
}

var errNoMetrics = errors.New("the CPU time and the memory of the service are missing: give the address of its metrics with --metrics")

// busyShare is how much of a CPU a service should use, so that there is room for peaks.
const busyShare = 0.8

// measured are the moments of a run at which the service's cost was read.
type measured struct {
	before, connected, after cost // no device; all devices; all commands
	began                    time.Time
	requests                 int64
	err                      error // why a cost is missing
}

// read reads the cost into one of the moments.
func (m *measured) read(ctx context.Context, f *fleet, into *cost) {
	var err error
	*into, err = f.cost(ctx)
	m.err = cmp.Or(m.err, err)
}

// acknowledged waits until the devices have acknowledged what they were sent, for a
// few seconds at most: what faults delay is not part of the figures.
func (f *fleet) acknowledged(ctx context.Context) {
	const patience = 5 * time.Second
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for slices.ContainsFunc(f.members, (*member).unacknowledged) && wait.For(limited, pollInterval) {
	}
}

// unacknowledged reports whether a command of the device is open, as far as it can know.
func (m *member) unacknowledged() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.orders, func(o order) bool {
		d, received := m.deliveryOf(o)
		return o.kind != changePolicy && o.createdAt > 0 && !(received && !d.confirmed.IsZero())
	})
}

// sizing sums up what was measured.
func (f *fleet) sizing(m measured, ended time.Time, commands int) Sizing {
	s := Sizing{Seconds: ended.Sub(m.began).Seconds(), Requests: f.requests.Load() - m.requests}
	if s.Seconds > 0 {
		s.RequestsPerSecond, s.CommandsPerSecond = float64(s.Requests)/s.Seconds, float64(commands)/s.Seconds
	}
	if m.err != nil {
		s.Missing = m.err.Error()
	} else {
		s.Service = serviceCost(m, len(f.members), commands)
	}
	s.Advice = s.advice()
	return s
}

func serviceCost(m measured, devices, commands int) *ServiceCost {
	each := func(difference float64, count int) float64 {
		if difference <= 0 || count == 0 {
			return 0
		}
		return difference * 1000 / float64(count)
	}
	c := &ServiceCost{Memory: m.before.memory, MemoryMost: max(m.before.memory, m.connected.memory, m.after.memory),
		MemoryPer1000Devices:      int64(each(float64(m.connected.memory-m.before.memory), devices)),
		MemoryPer1000Commands:     int64(each(float64(m.after.memory-m.connected.memory), commands)),
		CPUSecondsPer1000Enrolled: each(m.connected.cpu-m.before.cpu, devices),
		CPUSecondsPer1000Commands: each(m.after.cpu-m.connected.cpu, commands),
	}
	if c.CPUSecondsPer1000Commands > 0 {
		c.CommandsPerSecondAndOneCPU = busyShare * 1000 / c.CPUSecondsPer1000Commands
	}
	return c
}

const megabyte = 1e6

// advice is one sentence for the operator.
func (s Sizing) advice() string {
	c := s.Service
	if c == nil {
		return fmt.Sprintf("Plan with at least %.0f commands a second, which this run reached; it does not show what CPU time and "+
			"memory they take.", s.CommandsPerSecond)
	}
	text := fmt.Sprintf("Plan %.0f MB of memory and %.0f MB for each 1,000 connected devices", float64(c.Memory)/megabyte,
		max(1, float64(c.MemoryPer1000Devices)/megabyte))
	if c.CommandsPerSecondAndOneCPU > 0 {
		text += fmt.Sprintf(", and one CPU for each %.0f commands a second, of which they take 80 %%", c.CommandsPerSecondAndOneCPU)
	}
	return text + "."
}

// lines are the text of the sizing.
func (s Sizing) lines(line func(format string, args ...any)) {
	line("Load              %.0f requests and %.0f commands a second, for %.1f s", s.RequestsPerSecond, s.CommandsPerSecond, s.Seconds)
	if c := s.Service; c != nil {
		line("Service           %.0f MB of memory at first, %.0f MB at most; each 1,000 devices %.1f MB, each 1,000 commands %.1f MB",
			float64(c.Memory)/megabyte, float64(c.MemoryMost)/megabyte, float64(c.MemoryPer1000Devices)/megabyte,
			float64(c.MemoryPer1000Commands)/megabyte)
		line("CPU               each 1,000 enrollments %.2f s, each 1,000 commands %.2f s", c.CPUSecondsPer1000Enrolled,
			c.CPUSecondsPer1000Commands)
	}
	if s.Missing != "" {
		line("Missing           %s", s.Missing)
	}
	line("Advice            %s", s.Advice)
}

// cost is what the processes of the service have used.
type cost struct {
	cpu    float64 // seconds since they started
	memory int64   // resident, in bytes
}

// The series of a process in the metrics.
const (
	cpuSeries    = "process_cpu_seconds_total"
	memorySeries = "process_resident_memory_bytes"
)

// cost reads what all replicas have used. The error says what is missing.
func (f *fleet) cost(ctx context.Context) (total cost, err error) {
	if len(f.Metrics) == 0 {
		return cost{}, errNoMetrics
	}
	for _, address := range f.Metrics {
		one, err := readCost(ctx, &http.Client{Transport: f.http, Timeout: time.Minute}, address)
		if err != nil {
			return cost{}, fmt.Errorf("the CPU time and the memory of the service are missing: %w", err)
		}
		total.cpu += one.cpu
		total.memory += one.memory
	}
	return total, nil
}

func readCost(ctx context.Context, client *http.Client, address string) (c cost, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return c, err
	}
	response, err := client.Do(request)
	if err != nil {
		return c, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return c, fmt.Errorf("%s answers %d", address, response.StatusCode)
	}
	const most = 16 << 20
	found := map[string]float64{}
	lines := bufio.NewScanner(io.LimitReader(response.Body, most))
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if name == cpuSeries || name == memorySeries {
			if found[name], err = strconv.ParseFloat(text, 64); err != nil {
				return c, fmt.Errorf("%s: %s has no number: %w", address, name, err)
			}
		}
	}
	for _, name := range []string{cpuSeries, memorySeries} {
		if _, ok := found[name]; !ok {
			return c, fmt.Errorf("%s has no %s: the service measures it on Linux and Windows alone", address, name)
		}
	}
	return cost{found[cpuSeries], int64(found[memorySeries])}, lines.Err()
}
