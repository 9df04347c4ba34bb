// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Error texts of the API and of providers. */
#include <linux/string.h>
#include "fake.h"

static const int errors[] = {
	FI_SUCCESS, FI_EPERM, FI_ENOENT, FI_EINTR, FI_EIO, FI_E2BIG, FI_EAGAIN,
	FI_ENOMEM, FI_EACCES, FI_EFAULT, FI_EBUSY, FI_ENODEV, FI_EINVAL,
	FI_ENOSPC, FI_ENOSYS, FI_ENODATA, FI_ENOMSG, FI_EPROTO, FI_EOVERFLOW, FI_EMSGSIZE,
	FI_ENOPROTOOPT, FI_EOPNOTSUPP, FI_EADDRNOTAVAIL, FI_ENETDOWN,
	FI_ENETUNREACH, FI_ECONNABORTED, FI_ECONNRESET, FI_ENOBUFS, FI_ENOTCONN,
	FI_ETIMEDOUT, FI_ECONNREFUSED, FI_EHOSTUNREACH, FI_EREMOTEIO,
	FI_ECANCELED, FI_EKEYREJECTED,
	/* errnos without a libfabric name that calls return */
	EEXIST, EDEADLK,
	FI_EOTHER, FI_ETOOSMALL, FI_EOPBADSTATE, FI_EAVAIL, FI_EBADFLAGS,
	FI_ENOEQ, FI_EDOMAIN, FI_ENOCQ, FI_ECRC, FI_ETRUNC, FI_ENOKEY, FI_ENOAV,
	FI_EOVERRUN, FI_ENORX, FI_ENOMR,
};

static void each_error(struct kunit *test)
{
	unsigned int i, j;
	const char *text;

	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		text = fi_strerror(errors[i]);
		KUNIT_ASSERT_NOT_NULL(test, text);
		KUNIT_EXPECT_NE(test, strlen(text), 0);
		KUNIT_EXPECT_STRNEQ(test, text, "unknown error");
		KUNIT_EXPECT_STREQ(test, text, fi_strerror(-errors[i]));
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_STRNEQ(test, text, fi_strerror(errors[j]));
	}
}

/* The FI_* numbers have no gaps. */
static void own_errors(struct kunit *test)
{
	int err;

	KUNIT_EXPECT_EQ(test, FI_EOTHER, 256);
	for (err = FI_EOTHER; err <= FI_ENOMR; err++)
		KUNIT_EXPECT_STRNEQ(test, fi_strerror(err), "unknown error");
}

static void unknown_errors(struct kunit *test)
{
	static const int unknown[] = {
		255, -255, FI_ENOMR + 1, 99999, INT_MAX, INT_MIN,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(unknown); i++)
		KUNIT_EXPECT_STREQ(test, fi_strerror(unknown[i]),
				   "unknown error");
}

/* All FI_* errors are converted to errnos, and errnos are unchanged. */
static void for_user_space(struct kunit *test)
{
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		err = fi_to_errno(errors[i]);
		if (errors[i] < FI_EOTHER)
			KUNIT_EXPECT_EQ(test, err, errors[i]);
		KUNIT_EXPECT_GE(test, err, 0);
		KUNIT_EXPECT_LT(test, err, FI_EOTHER);
		KUNIT_EXPECT_EQ(test, err == 0, errors[i] == 0);
		KUNIT_EXPECT_EQ(test, fi_to_errno(-errors[i]), -err);
	}
	KUNIT_EXPECT_EQ(test, fi_to_errno(-FI_ETRUNC), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, fi_to_errno(FI_EOPBADSTATE), EINVAL);
	KUNIT_EXPECT_EQ(test, fi_to_errno(FI_ENOMR + 1), EIO);
	KUNIT_EXPECT_EQ(test, fi_to_errno(INT_MIN), -EIO);
	KUNIT_EXPECT_EQ(test, fi_to_errno(-255), -255);
}

static const char *fake_strerror(int prov_errno)
{
	return prov_errno == 7 ? "lucky" : NULL;
}

static void of_provider(struct kunit *test)
{
	static const int unknown[] = { FI_EBUSY, -FI_EPERM, FI_ETRUNC, 777, INT_MIN };
	struct kofi_fake *fake = kofi_fake_make(test, "fake");
	struct fid_fabric *fabric;
	char buf[40], text[40];
	struct fid_cq *cq;
	struct fid_eq *eq;
	unsigned int i;

	fake->provider.strerror = fake_strerror;
	KUNIT_ASSERT_EQ(test, kofi_fake_register(fake), 0);
	fabric = kofi_fake_fabric(test, fake);
	eq = kofi_fake_eq(test, fabric, NULL);
	cq = kofi_fake_cq(test, kofi_fake_domain(test, fake, fabric), NULL);

	KUNIT_EXPECT_STREQ(test, fi_cq_strerror(cq, 7, NULL, NULL, 0), "lucky");
	KUNIT_EXPECT_STREQ(test, fi_eq_strerror(eq, 7, NULL, NULL, 0), "lucky");
	/* A number that the provider doesn't know isn't taken for an errno. */
	for (i = 0; i < ARRAY_SIZE(unknown); i++) {
		snprintf(text, sizeof(text), "unknown provider error %d", unknown[i]);
		KUNIT_EXPECT_STREQ(test, fi_cq_strerror(cq, unknown[i], NULL, NULL, 0),
				   "unknown provider error");
		KUNIT_EXPECT_STREQ(test, fi_eq_strerror(eq, unknown[i], NULL, buf, sizeof(buf)),
				   "unknown provider error");
		KUNIT_EXPECT_STREQ(test, buf, text);
	}
	memset(buf, '#', sizeof(buf));
	fi_cq_strerror(cq, 777, NULL, buf, 25);
	KUNIT_EXPECT_STREQ(test, buf, "unknown provider error 7");
	KUNIT_EXPECT_NULL(test, memchr_inv(buf + 25, '#', sizeof(buf) - 25));
}

static void without_provider(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_new(test, "fake");
	struct fid_fabric *fabric = kofi_fake_fabric(test, fake);
	struct fid_eq *eq = kofi_fake_eq(test, fabric, NULL);

	KUNIT_EXPECT_STREQ(test, fi_eq_strerror(eq, FI_EIO, NULL, NULL, 0),
			   fi_strerror(FI_EIO));
}

/* The text is copied to the caller's buffer, truncated to its size. */
static void into_buffer(struct kunit *test)
{
	struct kofi_fake *fake = kofi_fake_make(test, "fake");
	struct fid_eq *eq;
	char buf[16];
	size_t len;

	fake->provider.strerror = fake_strerror;
	KUNIT_ASSERT_EQ(test, kofi_fake_register(fake), 0);
	eq = kofi_fake_eq(test, kofi_fake_fabric(test, fake), NULL);
	for (len = 0; len <= 8; len++) {
		memset(buf, '#', sizeof(buf));
		KUNIT_EXPECT_STREQ(test, fi_eq_strerror(eq, 7, NULL, buf, len),
				   "lucky");
		if (len)
			KUNIT_EXPECT_EQ(test, strnlen(buf, len),
					min_t(size_t, len - 1, 5));
		KUNIT_EXPECT_NULL(test, memchr_inv(buf + len, '#',
						   sizeof(buf) - len));
	}
	KUNIT_EXPECT_STREQ(test, buf, "lucky");
}

static struct kunit_case strerror_cases[] = {
	KUNIT_CASE(each_error),
	KUNIT_CASE(own_errors),
	KUNIT_CASE(unknown_errors),
	KUNIT_CASE(for_user_space),
	KUNIT_CASE(of_provider),
	KUNIT_CASE(without_provider),
	KUNIT_CASE(into_buffer),
	{}
};

static struct kunit_suite strerror_suite = {
	.name = "kofi_strerror",
	.test_cases = strerror_cases,
};

kunit_test_suite(strerror_suite);

MODULE_DESCRIPTION("KUnit tests of kOFI's texts for errors");
MODULE_AUTHOR("kOFI maintainers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_IMPORT_NS(KOFI);
MODULE_IMPORT_NS(KOFI_PROVIDER);
MODULE_IMPORT_NS(KOFI_TEST);
