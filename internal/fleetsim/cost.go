package fleetsim

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

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
		one, err := readCost(ctx, f.rest.client, address)
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
