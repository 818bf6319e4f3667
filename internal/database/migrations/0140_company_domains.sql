-- Which company the domain of an e-mail address belongs to. Only that company's
-- identity provider signs people of the domain in.

-- +goose Up
CREATE TABLE company_domains (
    domain TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    added_at BIGINT NOT NULL
);
CREATE INDEX company_domains_company ON company_domains (company_id, domain);
INSERT INTO company_domains (domain, company_id, added_at) SELECT domain, company_id, 0 FROM identity_domains;
