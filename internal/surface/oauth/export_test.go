package oauth

// What the tests of the rules look at.
var (
	RedirectFault   = redirectFault
	RedirectAllowed = redirectAllowed
	LoopbackOnly    = loopbackOnly
	IsDocumentID    = isDocumentID
	IsPublic        = isPublic
	ParseDocument   = parseDocument
	CacheFor        = cacheFor
)
