"""placeholder contract: the profile helper replaces this file"""
