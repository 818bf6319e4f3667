package access

// What cookies and tokens of a sign-in are sealed for.
const (
	PurposeBrowser   = purposeBrowser
	PurposeJourney   = purposeJourney
	PurposeChallenge = purposeChallenge
)
