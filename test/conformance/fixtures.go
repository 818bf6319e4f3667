// Package conformance holds our MCP surface against other people's programs:
// the official conformance suite, the Inspector and the TypeScript clients of
// both generations. `make conformance` runs it.
//
// The suite's frozen requirement sets ask for tools, resources and prompts that
// no device management has. Fixtures mounts them on the product's own protocol
// server, behind the product's own middleware, so that what is measured is the
// stack that serves devices.
package conformance

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Fixtures adds everything that the suite calls by name. It is for
// service.Options.CustomizeMCP.
func Fixtures(server *sdk.Server) {
	for name, content := range contents() {
		addTool(server, name, "Answers with "+name+".", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: content}, nil
		})
	}
	addTool(server, "test_error_handling", "Always fails.", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var failed sdk.CallToolResult
		failed.SetError(errors.New("this failure is what the tool is for"))
		return &failed, nil
	})
	addSchemas(server)
	addStreams(server)
	addQuestions(server)
	addDocuments(server)
}

const noArguments = `{"type":"object"}`

func addTool(server *sdk.Server, name, description string, handler sdk.ToolHandler) {
	server.AddTool(&sdk.Tool{Name: name, Description: description, InputSchema: json.RawMessage(noArguments)}, handler)
}

// textResult is a result of one text.
func textResult(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// contents are the tools that differ in what they answer alone.
func contents() map[string][]sdk.Content {
	image := &sdk.ImageContent{Data: png(), MIMEType: "image/png"}
	resource := func(uri, kind, text string) sdk.Content {
		return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: uri, MIMEType: kind, Text: text}}
	}
	return map[string][]sdk.Content{
		"test_simple_text":       {&sdk.TextContent{Text: "This is a simple text response for testing."}}, // the suite's words
		"test_image_content":     {image},
		"test_audio_content":     {&sdk.AudioContent{Data: wav(), MIMEType: "audio/wav"}},
		"test_embedded_resource": {resource("test://embedded-resource", "text/plain", "a resource in a result")},
		"test_multiple_content_types": {&sdk.TextContent{Text: "three kinds of content"}, image,
			resource("test://mixed-content-resource", "application/json", `{"kind":"json"}`)},
	}
}

// addSchemas adds the tools whose schemas must arrive untouched.
func addSchemas(server *sdk.Server) {
	echo := func(_ context.Context, request *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return textResult(string(request.Params.Arguments)), nil
	}
	server.AddTool(&sdk.Tool{Name: "json_schema_2020_12_tool", Description: "Has a schema with much of the vocabulary of 2020-12.",
		InputSchema: json.RawMessage(richSchema)}, echo)
	server.AddTool(&sdk.Tool{Name: "test_x_mcp_header", Description: "Has an argument that clients repeat in a header.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)}, echo)
}

// richSchema has the members that the scenario json-schema-2020-12 compares.
const richSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {"address": {"$anchor": "addressDef", "type": "object",
		"properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
	"properties": {
		"name": {"type": "string"},
		"address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"},
		"email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`

// object is a schema with required members.
func object(members map[string]string) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	for name, kind := range members {
		s.Properties[name] = &jsonschema.Schema{Type: kind}
		s.Required = append(s.Required, name)
	}
	return s
}
