package service

import (
	"time"

	"github.com/musterhq/muster/internal/command"
	"github.com/musterhq/muster/internal/fault"
	"github.com/musterhq/muster/internal/operation"
)

// kernelMetrics counts what the kernel refuses for its rate.
type kernelMetrics struct{ m *Metrics }

func (k kernelMetrics) Done(*operation.Operation, fault.Code, time.Duration) {}

func (k kernelMetrics) Limited(o *operation.Operation) { k.m.BudgetRefused(o.Name) }

// restMetrics counts requests; one that met no operation is counted as "none".
type restMetrics struct{ m *Metrics }

func (r restMetrics) Served(operation string, status int, took time.Duration) {
	if operation == "" {
		operation = "none"
	}
	r.m.Request(operation, status, took)
}

// commandMetrics counts what becomes of commands.
type commandMetrics struct{ m *Metrics }

func (c commandMetrics) CommandFinished(t command.Type, outcome string) {
	c.m.Command(string(t), outcome)
}
