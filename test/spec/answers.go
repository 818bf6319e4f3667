package spec

// Answer is how a refusal looks: its status and the members of its body, in
// no order; none means an empty body. A blank is before the members that all
// problem details have.
type Answer struct {
	Status  int
	Members string
}

const (
	small   = "error message status"
	problem = "type title status detail instance"
)

// Answers is contract 7.1 to 7.5: for each family, each code that it may answer.
var Answers = map[Family]map[string]Answer{
	FirstFour: {
		"malformed":         {400, problem},
		"invalid_arguments": {400, problem + " errors"},
		"unauthorized":      {401, small},
		"forbidden":         {403, problem},
		"not_found":         {404, ""},
		"unsupported":       {409, problem},
		"refused":           {422, problem},
		"rate_limited":      {429, small},
		"internal_error":    {500, problem},
		"provider_error":    {502, problem + " retryable"},
		"unavailable":       {503, problem + " retryable"},
	},
	OtherCommands: {
		"malformed":         {400, problem + " code"},
		"invalid_arguments": {400, problem + " code errors"},
		"unauthorized":      {401, small},
		"forbidden":         {403, problem + " code"},
		"not_found":         {404, problem + " code"},
		"unsupported":       {409, problem + " code"},
		"refused":           {422, problem + " code"},
		"rate_limited":      {429, problem + " code retryable"},
		"internal_error":    {500, problem + " code retryable"},
		"provider_error":    {502, problem + " code retryable"},
		"unavailable":       {503, problem + " code retryable"},
	},
	Policies: {
		"malformed":             {400, problem + " code retryable"},
		"invalid_arguments":     {400, problem + " code retryable errors"},
		"unauthorized":          {401, small},
		"forbidden":             {403, problem + " code retryable"},
		"not_found":             {404, problem + " code retryable"},
		"unsupported":           {409, problem + " code retryable"},
		"not_pending":           {409, problem + " code retryable"},
		"stale_proposal":        {409, problem + " code retryable"},
		"refused":               {422, problem + " code retryable"},
		"confirmation_required": {422, problem + " code retryable"},
		"rate_limited":          {429, problem + " code retryable"},
		"internal_error":        {500, problem + " code retryable"},
	},
	Provisioning: {
		"malformed":         {400, problem},
		"invalid_arguments": {400, problem + " code retryable errors"},
		"unauthorized":      {401, small},
		"forbidden":         {403, problem + " code retryable"},
		"not_found":         {404, problem + " code retryable"},
		"unsupported":       {409, problem + " code retryable"},
		"refused":           {422, problem + " code retryable"},
		"rate_limited":      {429, problem + " code retryable"},
		"internal_error":    {500, problem + " code retryable"},
		"provider_error":    {502, problem + " code retryable"},
	},
	Reads: {
		"cursor_expired":    {410, problem + " code retryable"},
		"unavailable":       {503, problem + " code retryable"},
		"malformed":         {400, problem + " code retryable"},
		"invalid_arguments": {400, problem + " code retryable errors"},
		"unauthorized":      {401, small},
		"forbidden":         {403, problem + " code retryable"},
		"not_found":         {404, problem + " code retryable"},
		"rate_limited":      {429, problem + " code retryable"},
		"internal_error":    {500, problem + " code retryable"},
	},
}
