package ops

import (
	"time"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
	"github.com/musterhq/muster/internal/surface/rest"
)

// Kernel counts what the kernel refuses for its rate.
func (m *Metrics) Kernel() operation.Observer { return kernelMetrics{m} }

type kernelMetrics struct{ m *Metrics }

func (k kernelMetrics) Done(*operation.Operation, fault.Code, time.Duration) {}

func (k kernelMetrics) Limited(o *operation.Operation) { k.m.BudgetRefused(o.Name) }

// Requests counts what REST and MCP answer; a request that met no operation is counted
// as "none".
func (m *Metrics) Requests() rest.Observer { return restMetrics{m} }

type restMetrics struct{ m *Metrics }

func (r restMetrics) Served(operation string, status int, took time.Duration) {
	if operation == "" {
		operation = "none"
	}
	r.m.Request(operation, status, took)
}

// Commands counts what becomes of commands.
func (m *Metrics) Commands() command.Observer { return commandMetrics{m} }

type commandMetrics struct{ m *Metrics }

func (c commandMetrics) CommandFinished(t command.Type, outcome string) {
	c.m.Command(string(t), outcome)
}
