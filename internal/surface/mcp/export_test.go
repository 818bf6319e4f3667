package mcp

// What the tests of the rules look at.
var (
	Clean       = clean
	CleanJSON   = cleanJSON
	ReadMessage = readMessage
	Bearer      = bearer
)
