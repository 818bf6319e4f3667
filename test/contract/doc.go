// Package contract tests the public contract of docs/contract.md on a running service:
// endpoints and their answers, errors over REST and MCP, tools, Idempotency-Keys, budgets
// and limits, rights and isolation, and the authorization server. A change that breaks one
// of these tests breaks callers.
package contract
