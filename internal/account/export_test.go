package account

// What cookies and tokens of a sign-in are sealed for.
const (
	PurposeBrowser        = purposeBrowser
	PurposeProviderSignIn = purposeProviderSignIn
	PurposeChallenge      = purposeChallenge
)
